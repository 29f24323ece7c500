"""Skips values of an RDB file without building them, of supported and unsupported types.

    2        set            count, members
    3        sorted set     count, then members, each with a score: a size and digits (from 253 on nan, inf)
    5        sorted set     count, then members, each with 8 bytes of score
    4        hash           count, then names and values
    22, 24   hash           24: the earliest expiry, 8 bytes; count, then expiry, name and value
    22       hash, Valkey   count, then name, value and 8 bytes of expiry
    23, 25   hash           25: the earliest expiry, 8 bytes; one string
    9 .. 20  packed types   one string
    7        module         its id, then parts, each after its kind, up to a 0

A file that is only read for its streams may hold any of these. Damaged strings, lists and streams are skipped
too: only their lengths are read (value.py, stream.py show the layout), and nothing inside a string. Type 6
(modules before 4.0) does not state its length, and types from 28 on (Redis 8.8 and later) are not described
anywhere that we rely on: they are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from penstock.persist.rdb import format as form
from penstock.persist.rdb.input import RdbInput

_SET, _SCORES_AS_TEXT, _HASH, _SCORES = 2, 3, 4, 5
_MODULE = 7
_PACKED = frozenset((9, 11, 12, 13, 16, 17, 20))
_EXPIRING, _EXPIRING_PACKED, _EXPIRING_FROM, _EXPIRING_FROM_PACKED = 22, 23, 24, 25
_ID_BYTES = 16
_TIME_BYTES = 8
_CLASS_BYTES = 4
_SCORE_WORDS_FROM = 253  # 253 nan, 254 inf, 255 -inf: no text follows
_PART_END, _PART_SIGNED, _PART_UNSIGNED, _PART_FLOAT, _PART_DOUBLE, _PART_STRING = range(6)


def skip_value(source: RdbInput, kind: int, is_valkey: bool = False) -> None:
    """Skip a value. Raises: CorruptData if it is cut off or its end cannot be found."""
    skip = _SKIPPERS.get(kind)
    if skip is not None:
        skip(source)
        return
    if is_valkey and kind == _EXPIRING:
        for _ in range(source.length()):
            _strings(source, 2)
            source.raw(_TIME_BYTES)
        return
    if kind in (_EXPIRING_FROM, _EXPIRING_FROM_PACKED):
        source.raw(8)
    if kind in _PACKED or kind in (_EXPIRING_PACKED, _EXPIRING_FROM_PACKED):
        source.skip_string()
    elif kind == _SET:
        _strings(source, source.length())
    elif kind == _HASH:
        _strings(source, 2 * source.length())
    elif kind in (_SCORES, _SCORES_AS_TEXT):
        for _ in range(source.length()):
            source.skip_string()
            source.raw(8 if kind == _SCORES else _score_bytes(source.byte()))
    elif kind in (_EXPIRING, _EXPIRING_FROM):
        for _ in range(source.length()):
            source.take_number()
            _strings(source, 2)
    elif kind == _MODULE:
        source.take_number()
        _parts(source)
    else:
        raise source.corrupt(f"type {kind} ({form.type_name(kind)}) cannot be skipped")


def skips_operation(source: RdbInput, operation: int, is_valkey: bool = False) -> bool:
    """Skip a function library, module data or a slot being imported; False for other operations."""
    if operation == form.FUNCTION:
        source.skip_string()
    elif operation == form.SLOT_IMPORT and is_valkey:
        source.skip_string()  # the import's name
        _numbers(source, 2 * source.length())  # ranges of slots
    elif operation == form.KEY_METADATA:
        for _ in range(source.length()):
            source.raw(_CLASS_BYTES)
            _parts(source)
    elif operation == form.MODULE_AUX:
        for _ in range(3):  # the module's id and when it was written (before or after the keys)
            source.take_number()
        _parts(source)
    else:
        return False
    return True


def _score_bytes(size: int) -> int:
    return 0 if size >= _SCORE_WORDS_FROM else size


def _strings(source: RdbInput, count: int) -> None:
    for _ in range(count):
        source.skip_string()


def _numbers(source: RdbInput, count: int) -> None:
    for _ in range(count):
        source.take_number()


def _skip_strings(source: RdbInput) -> None:
    """Skip a list of strings or of ziplists."""
    _strings(source, source.length())


def _skip_list_nodes(source: RdbInput) -> None:
    for _ in range(source.length()):
        source.take_number()
        source.skip_string()


def _skip_stream(source: RdbInput, kind: int) -> None:
    """Skip a stream; stream.py shows its layout."""
    _strings(source, 2 * source.length())
    _numbers(source, 3 if kind < form.STREAM_2 else 8)  # length and ids; counters
    for _ in range(source.length()):
        source.skip_string()
        _numbers(source, 2 if kind < form.STREAM_2 else 3)
        for _ in range(source.length()):
            source.raw(_ID_BYTES + _TIME_BYTES)
            source.take_number()
        for _ in range(source.length()):
            source.skip_string()
            source.raw(_TIME_BYTES if kind < form.STREAM_3 else 2 * _TIME_BYTES)
            _ids(source)
        if kind >= form.STREAM_5:
            _ids(source)
    if kind >= form.STREAM_4:
        _numbers(source, 2)
        for _ in range(source.length()):
            source.skip_string()
            for _ in range(source.length()):
                source.skip_string()
                _numbers(source, 2)
        _numbers(source, 2)


def _ids(source: RdbInput) -> None:
    for _ in range(source.length()):
        source.raw(_ID_BYTES)


_SKIPPERS: dict[int, Callable[[RdbInput], None]] = {
    form.STRING: RdbInput.skip_string,
    form.LIST: _skip_strings,
    form.LIST_ZIPLIST: RdbInput.skip_string,
    form.LIST_ZIPLISTS: _skip_strings,
    form.LIST_NODES: _skip_list_nodes,
    **{kind: partial(_skip_stream, kind=kind) for kind in form.STREAM_TYPES},
}


def _parts(source: RdbInput) -> None:
    while True:
        part = source.length()
        if part == _PART_END:
            return
        if part in (_PART_SIGNED, _PART_UNSIGNED):
            source.take_number()
        elif part in (_PART_FLOAT, _PART_DOUBLE):
            source.raw(4 if part == _PART_FLOAT else 8)
        elif part == _PART_STRING:
            source.skip_string()
        else:
            raise source.corrupt(f"part {part} of a module's value")
