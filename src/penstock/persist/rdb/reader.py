"""Reads an RDB file key by key, never the whole file at once.

    with open("dump.rdb", "rb", buffering=0) as file:
        reader = RdbReader(file, "dump.rdb")
        for item in reader.items():
            item.database, item.key, item.expiry_ms, item.value
        reader.aux[b"redis-ver"], reader.rest()

The file is a sequence of operations (format.py). Operations about the next key (its expiry, its LRU and LFU
data) come before it. LRU and LFU data is ignored, because penstock evicts nothing. Function libraries and
module data are refused, because they would be lost at the next save. So are values of unsupported types,
unless `skip_foreign` is set, which is for callers that never write the data.

Damage raises CorruptData with the file's name and the offset. Everything is validated while it is read,
including the inside of nodes: the checksum comes last, may be missing (`rdbchecksum no`), and does not
protect against a forged file. `deep=False` skips the inside of nodes and saves up to a fifth of the time.
After the end, `vouched` tells whether there was a valid checksum. A caller must not use the items before
`items` ends.

Empty lists are skipped and counted (`empty_keys`), as in Redis.

Cost: a million entries of five fields (97 MB) take 0.26 s, Redis takes 0.30 s (benchmarks/_rdb.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.engine.keyspace import Keyspace
from penstock.errors import CorruptData
from penstock.persist.rdb import format as form
from penstock.persist.rdb import skip as rdb_skip
from penstock.persist.rdb import value as rdb_value
from penstock.persist.rdb.input import RdbInput, Source
from penstock.persist.rdb.value import Value, ValueLimits

_MS_PER_SECOND = 1000
_SHOWN_KEY_BYTES_MAX = 64

_REFUSED_OPERATIONS = {
    form.HASH_TEMPLATES: "templates of hashes",
    form.KEY_METADATA: "a module's metadata of a key",
    form.FUNCTION: "a library of functions",
    form.FUNCTION_PRE_RELEASE: "a library of functions of a 7.0 before its release",
    form.MODULE_AUX: "data of a module",
}
_REFUSED_OPERATIONS_OF_VALKEY = {**_REFUSED_OPERATIONS, form.SLOT_IMPORT: "a slot being imported"}


class RdbItem(NamedTuple):
    """One key of a file."""

    database: int
    key: bytes
    expiry_ms: int | None
    value: Value


class Extent(NamedTuple):
    """The bytes of one key: from `place` to `end`, its value from `start` to `end` (exclusive)."""

    place: int
    database: int
    key: bytes
    expiry_ms: int | None
    kind: int
    start: int
    end: int


class RdbReader:
    """A file being read.

    Read: items, or extents. Ask: version, is_valkey, aux, offset, place, empty_keys, foreign_keys, skipped,
    vouched, rest.
    """

    __slots__ = (
        "_deep",
        "_input",
        "_limits",
        "_skip_foreign",
        "aux",
        "checksum",
        "database",
        "empty_keys",
        "foreign_keys",
        "is_unsupported",
        "is_valkey",
        "place",
        "skipped",
        "version",
        "vouched",
    )

    def __init__(
        self,
        source: Source,
        name: str = "",
        limits: ValueLimits | None = None,
        deep: bool = True,
        skip_foreign: bool = False,
    ) -> None:
        """`skip_foreign`: skip values of unsupported types instead of refusing them."""
        self._input = RdbInput(source, name)
        self._limits = ValueLimits() if limits is None else limits
        self._deep = deep
        self._skip_foreign = skip_foreign
        self.aux: dict[bytes, bytes] = {}
        self.database = 0
        self.empty_keys = 0
        self.foreign_keys: set[tuple[int, bytes]] = set()  # skipped keys and their databases
        self.is_unsupported = (
            False  # after an error: the file is sound, but penstock cannot keep its data
        )
        self.is_valkey = False
        self.place = 0  # the offset of the current key or operation
        self.skipped: list[tuple[int, str]] = []  # skipped operations
        self.version = 0
        self.vouched = False  # after the end: the file has a valid checksum
        self.checksum = 0  # after the end: the stated checksum

    @property
    def offset(self) -> int:
        """The position in the file."""
        return self._input.offset

    def corrupt(self, what: str) -> CorruptData:
        """An error for the caller to raise, at the current position."""
        return self._input.corrupt(what)

    def rest(self) -> bytes:
        """After the end: bytes read beyond it. In an old AOF commands follow there."""
        return self._input.rest()

    def items(self) -> Iterator[RdbItem]:
        """Yield all keys in the order of the file. Raises: CorruptData."""
        for kind, expiry_ms in self._keys():
            if not self._skips(kind):
                item = self._read_key(kind, expiry_ms, self.place)
                if rdb_value.is_empty_list(item.value):
                    self.empty_keys += 1
                else:
                    yield item
        self._check_end()

    def extents(self) -> Iterator[Extent]:
        """Yield the place of each key, without validating its value. A wrong checksum only clears `vouched`.

        Raises: CorruptData if the end of a value cannot be found.
        """
        for kind, expiry_ms in self._keys():
            key = self._input.string()
            start = self._input.offset
            rdb_skip.skip_value(self._input, kind, self.is_valkey)
            yield Extent(self.place, self.database, key, expiry_ms, kind, start, self._input.offset)
        if self.version >= form.CHECKSUM_SINCE:
            computed = self._input.crc_now()
            self.vouched = (
                int.from_bytes(self._input.raw(form.CHECKSUM_BYTES), "little") == computed
            )

    def _keys(self) -> Iterator[tuple[int, int | None]]:
        """Yield the type and expiry of each key. The caller reads its name and value."""
        self._read_header()
        expiry_ms: int | None = None
        while True:
            start = self.place = self._input.offset
            operation = self._input.byte()
            if operation < form.OPERATIONS_FROM:
                yield operation, expiry_ms
                expiry_ms = None
            elif operation == form.EXPIRY_MS:
                expiry_ms = self._input.milliseconds()
            elif operation == form.EXPIRY_SECONDS:
                seconds = int.from_bytes(self._input.raw(4), "little", signed=True)
                expiry_ms = seconds * _MS_PER_SECOND
            elif operation == form.END:
                break
            else:
                self._operate(operation, start)

    def _read_header(self) -> None:
        header = self._input.raw(form.HEADER_BYTES)
        self.is_valkey = header.startswith(form.VALKEY_MAGIC)
        magic = form.VALKEY_MAGIC if self.is_valkey else form.MAGIC
        digits = header[len(magic) :]
        if not header.startswith(magic) or not digits.isdigit():
            raise self._input.corrupt(f"{header!r} is not the header of an RDB file", 0)
        self.version = int(digits)
        if self.is_valkey and self.version != form.VALKEY_VERSION:
            known = f"of Valkey, version {form.VALKEY_VERSION} can be read"
        elif not self.is_valkey and not 1 <= self.version <= form.VERSION_MAX:
            known = f"versions 1 to {form.VERSION_MAX} can be read"
        else:
            return
        raise self._input.corrupt(f"RDB version {self.version}; {known}", len(magic))

    def _skips(self, kind: int) -> bool:
        """With `skip_foreign`, skip a key of an unsupported type; False if it is to be read."""
        if not self._skip_foreign or rdb_value.refusal_or_none(kind) is None:
            return False
        self.foreign_keys.add((self.database, self._input.string()))
        rdb_skip.skip_value(self._input, kind, self.is_valkey)
        return True

    def _read_key(self, kind: int, expiry_ms: int | None, start: int) -> RdbItem:
        key = self._input.string()
        refusal = rdb_value.refusal_or_none(kind)
        if refusal is not None:
            shown = key[:_SHOWN_KEY_BYTES_MAX]
            self.is_unsupported = True
            raise self._input.corrupt(
                f"the key {shown!r} in database {self.database}: {refusal}", start
            )
        try:
            value = rdb_value.read_value(self._input, kind, self._limits, self._deep)
        except CorruptData as error:
            shown = key[:_SHOWN_KEY_BYTES_MAX]
            raise self._input.corrupt(f"the key {shown!r}: {error.what}", error.offset) from None
        return RdbItem(self.database, key, expiry_ms, value)

    def _operate(self, operation: int, start: int) -> None:
        """Read an operation other than a key, an expiry or the end."""
        source = self._input
        if operation == form.SELECT:
            self.database = source.length()
        elif operation == form.RESIZE:
            source.length()  # the number of keys, for sizing a hash table
            source.length()
        elif operation == form.AUX:
            name = source.string()
            self.aux[name] = source.string()
        elif operation == form.FREQUENCY:
            source.byte()
        elif operation == form.IDLE:
            source.length()
        elif operation == form.SLOT_INFO:
            for _ in range(3):  # the slot, its keys, those that expire
                source.length()
        else:
            self._refuse_or_skip(operation, start)

    def _refuse_or_skip(self, operation: int, start: int) -> None:
        """Handle an operation whose data penstock cannot keep."""
        source = self._input
        known = _REFUSED_OPERATIONS_OF_VALKEY if self.is_valkey else _REFUSED_OPERATIONS
        if operation not in known:
            raise source.corrupt(f"unknown operation {operation}", start)
        if self._skip_foreign and rdb_skip.skips_operation(source, operation, self.is_valkey):
            self.skipped.append((start, known[operation]))
            return
        self.is_unsupported = True
        raise source.corrupt(
            f"{known[operation]} (operation {operation}), which penstock cannot keep;"
            " remove it with the server that wrote the file",
            start,
        )

    def _check_end(self) -> None:
        if self.version < form.CHECKSUM_SINCE:
            return
        computed = self._input.crc_now()
        start = self._input.offset
        stated = self.checksum = int.from_bytes(self._input.raw(form.CHECKSUM_BYTES), "little")
        if stated == 0:
            return  # rdbchecksum no
        if stated != computed:
            raise self._input.corrupt(
                f"the checksum of the file is {computed:016x}, but it states {stated:016x}:"
                " something before it is damaged",
                start,
            )
        self.vouched = True


def load_databases(reader: RdbReader, databases: list[Keyspace]) -> int:
    """Put all keys of a file into empty databases; return their number. Raises: CorruptData.

    Expired keys are loaded too, because the clock is the caller's.
    """
    count = 0
    for database, key, expiry_ms, value in reader.items():
        shown = key[:_SHOWN_KEY_BYTES_MAX]
        if database >= len(databases):
            reader.is_unsupported = True
            raise reader.corrupt(
                f"the key {shown!r} is in database {database}, but there are only {len(databases)};"
                " raise `databases`"
            )
        keyspace = databases[database]
        if key in keyspace.values:
            raise reader.corrupt(f"a second key {shown!r} in database {database}")
        keyspace.put(key, value)
        if expiry_ms is not None:
            keyspace.set_expiry(key, expiry_ms)
        count += 1
    return count
