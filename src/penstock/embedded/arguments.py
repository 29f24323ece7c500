"""Turns redis-py's arguments into a command, and refuses what redis-py refuses.

A DataError has redis-py's text. If several arguments are wrong, it is about the same one as redis-py's: the
order of the checks matters.
"""

from __future__ import annotations

from typing import Any

from penstock.core.frame import Frame
from penstock.core.idempotency import DURATION_S_MAX
from penstock.errors import DataError

REF_POLICIES = {"KEEPREF", "DELREF", "ACKED"}
NACK_MODES = {"SILENT", "FAIL", "FATAL"}
_SIZE_MAX = 1_000_000  # of redis-py; the engine refuses what is above its own


def check_newer_options(
    entry_id: Any, ref_policy: str | None, idmpauto: str | None, idmp: tuple[Any, Any] | None
) -> None:
    """Check the options of Redis 8 as redis-py does."""
    if idmpauto is not None and idmp is not None:
        raise DataError("Only one of ```idmpauto``` or ```idmp``` may be specified")
    if (idmpauto is not None or idmp is not None) and entry_id != "*":
        raise DataError("IDMPAUTO and IDMP can only be used with id='*'")
    if ref_policy is not None and ref_policy not in REF_POLICIES:
        raise DataError("XADD ref_policy must be one of: KEEPREF, DELREF, ACKED")
    if idmp is not None and (not isinstance(idmp, tuple) or len(idmp) != 2):
        raise DataError("XADD idmp must be a tuple of (producer_id, idempotent_id)")


def newer_options(
    ref_policy: str | None, idmpauto: str | None, idmp: tuple[Any, Any] | None
) -> list[Any]:
    """The options of Redis 8. At an older level the engine refuses them, as an older server does."""
    pieces: list[Any] = [] if ref_policy is None else [ref_policy]
    if idmpauto is not None:
        pieces += [b"IDMPAUTO", idmpauto]
    if idmp is not None:
        pieces += [b"IDMP", *idmp]
    return pieces


def check_removal(command: str, ids: tuple[Any, ...], ref_policy: str) -> None:
    """Check the arguments of XDELEX and XACKDEL."""
    if not ids:
        raise DataError(f"{command} requires at least one message ID")
    if ref_policy not in REF_POLICIES:
        raise DataError(f"{command} ref_policy must be one of: KEEPREF, DELREF, ACKED")


def idempotency(duration_s: int | None, size_max: int | None) -> list[Any]:
    """`[IDMP-DURATION seconds] [IDMP-MAXSIZE messages]`. redis-py's limit of the duration is lower."""
    if duration_s is None and size_max is None:
        raise DataError("XCFGSET requires at least one of idmp_duration or idmp_maxsize")
    pieces: list[Any] = []
    if duration_s is not None:
        if not isinstance(duration_s, int) or not 1 <= duration_s <= DURATION_S_MAX:
            raise DataError(
                f"XCFGSET idmp_duration must be an integer between 1 and {DURATION_S_MAX}"
            )
        pieces += [b"IDMP-DURATION", duration_s]
    if size_max is not None:
        if not isinstance(size_max, int) or not 1 <= size_max <= _SIZE_MAX:
            raise DataError("XCFGSET idmp_maxsize must be an integer between 1 and 1,000,000")
        pieces += [b"IDMP-MAXSIZE", size_max]
    return pieces


def trim(maxlen: int | str | None, approximate: bool, minid: Any, limit: int | None) -> list[Any]:
    """`MAXLEN|MINID [~] threshold [LIMIT n]`."""
    pieces: list[Any] = []
    if maxlen is not None or minid is not None:
        pieces.append(b"MAXLEN" if maxlen is not None else b"MINID")
        if approximate:
            pieces.append(b"~")
        pieces.append(maxlen if maxlen is not None else minid)
    if limit is not None:
        pieces += [b"LIMIT", limit]
    return pieces


def count(command: str, entries: int | None) -> list[Any]:
    """`COUNT n`, or nothing."""
    if entries is None:
        return []
    if not isinstance(entries, int) or entries < 1:
        raise DataError(f"{command} count must be a positive integer")
    return [b"COUNT", str(entries)]


def is_counted(refusal: str, value: Any) -> bool:
    """Tell whether an option is a number. As in redis-py, a type that int() refuses counts as not given."""
    try:
        is_negative = int(value) < 0
    except TypeError:
        return False
    if is_negative:
        raise DataError(refusal)
    return True


def block(command: str, timeout_ms: int | None) -> list[Any]:
    """`BLOCK ms`, or nothing."""
    if timeout_ms is None:
        return []
    if not isinstance(timeout_ms, int) or timeout_ms < 0:
        raise DataError(f"{command} block must be a non-negative integer")
    return [b"BLOCK", str(timeout_ms)]


def limits(
    command: str, entries: int | None, max_count: int | None, max_size: int | None
) -> list[Any]:
    """`[COUNT n] [MAXCOUNT n] [MAXSIZE bytes]`."""
    pieces = count(command, entries)
    if max_count is not None:
        if not isinstance(max_count, int) or max_count < 1:
            raise DataError(f"{command} max_count must be a positive integer")
        if entries is not None and max_count < entries:
            raise DataError(f"{command} max_count must be greater than or equal to count")
        pieces += [b"MAXCOUNT", str(max_count)]
    if max_size is not None:
        if not isinstance(max_size, int) or max_size < 1:
            raise DataError(f"{command} max_size must be a positive integer")
        pieces += [b"MAXSIZE", str(max_size)]
    return pieces


def streams(command: str, ids_by_key: Any) -> list[Any]:
    """`STREAMS key ... id ...`."""
    checked_streams(command, ids_by_key)
    return [b"STREAMS", *ids_by_key.keys(), *ids_by_key.values()]


def checked_streams(command: str, ids_by_key: Any) -> dict[Any, Any]:
    """The same; refuses what is not a dictionary with a stream."""
    if not isinstance(ids_by_key, dict) or not ids_by_key:
        raise DataError(f"{command} streams must be a non empty dict")
    return ids_by_key


def put(frame: Frame, value: Any) -> None:
    """Add one argument as redis-py would encode it. Raises: DataError for what it would refuse."""
    kind = type(value)
    if kind is str:
        frame.add_text(value)
    elif kind is bytes:
        frame.add(value)
    elif isinstance(value, bool) or not isinstance(
        value, (str, bytes, bytearray, memoryview, int, float)
    ):
        raise DataError(
            f"Invalid input of type: '{kind.__name__}'. "
            "Convert to a bytes, string, int or float first."
        )
    elif isinstance(value, (int, float)):
        frame.add_text(repr(value))
    elif isinstance(value, str):
        frame.add(value.encode())
    else:
        frame.add(bytes(value))
