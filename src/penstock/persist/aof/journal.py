"""The journal encodes effects as bytes of the append-only file and collects them until the end of a turn.

    *5\\r\\n$4\\r\\nXADD\\r\\n$1\\r\\ns\\r\\n$15\\r\\n1700000000000-0\\r\\n$4\\r\\ntemp\\r\\n$2\\r\\n21\\r\\n

An effect has the form of a client's command, so Redis can read it too. Two things are added:

    SELECT n       before an effect on a different database than the previous effect
    MULTI, EXEC    around a unit of more than one effect: all of it is replayed, or none if it is cut off

The owner takes the bytes out and writes them (`take`). A replay starts each file with database 0, so the
first effect of a new file needs SELECT again (`forget_database`).

Invariants
  J1  between two units the bytes are complete commands, and every MULTI has its EXEC.
  J2  the running unit begins at `_start` and has `_count` effects so far.
  J3  the bytes up to `_whole` are complete units; those after it belong to a running or interrupted unit.

Cost: O(bytes written), amortised. A unit of many effects is moved once, by 15 bytes, to insert its MULTI.
"""

from __future__ import annotations

from penstock.core import memory
from penstock.core.frame import Frame
from penstock.core.groups.group import Group
from penstock.core.stream import Stream
from penstock.engine.effects import EffectSink
from penstock.persist.aof import record_bytes

_NO_DATABASE = -1
_HEAD_BYTES_MAX = 24  # a type, a sign, 20 digits, CR LF
_ID_BYTES_MAX = 72  # a head, two numbers of 20 digits, a dash, CR LF
_ARRAY = 42
_FIRST_BYTES = 64 * 1024
_KEEP_BYTES_MAX = 4 << 20  # a buffer that one huge turn enlarged is freed
_MULTI = b"*1\r\n$5\r\nMULTI\r\n"
_EXEC = b"*1\r\n$4\r\nEXEC\r\n"
_XADD = b"$4\r\nXADD\r\n"
# The parts of a delivery that are always the same.
_XCLAIM = b"$6\r\nXCLAIM\r\n"
_NO_IDLE_TIME = b"$1\r\n0\r\n"
_TIME = b"$4\r\nTIME\r\n"
_FIRST_DELIVERY = b"$10\r\nRETRYCOUNT\r\n$1\r\n1\r\n$5\r\nFORCE\r\n$6\r\nJUSTID\r\n$6\r\nLASTID\r\n"
_SETID = b"$6\r\nXGROUP\r\n$5\r\nSETID\r\n"
_ENTRIESREAD = b"$11\r\nENTRIESREAD\r\n"
_CLAIM_WORDS = 13  # and one for each id
_SETID_WORDS = 7
_ADDED_BYTES_MAX = record_bytes.ADDED_BYTES_MAX
_WORD_BYTES_MAX = record_bytes.WORD_BYTES_MAX
_DELIVERY_BYTES_MAX = (
    768  # without the names: 160 fixed, two heads, nine heads or numbers of up to 72
)


class Journal(EffectSink):
    """Effects that are not written yet, as bytes: size, take, forget_database.

    `database`: that of the last effect; -1 if the next one begins with SELECT.
    """

    __slots__ = ("_buffer", "_count", "_depth", "_start", "_whole", "database", "size")

    def __init__(self) -> None:
        self._buffer = bytearray(_FIRST_BYTES)
        self.size = 0
        self.database = _NO_DATABASE
        self._depth = 0
        self._start = 0
        self._count = 0
        self._whole = 0

    def take(self) -> bytes:
        """Return all bytes and empty the journal."""
        taken = memory.cut(self._buffer, 0, self.size)
        self.size = self._whole = 0
        if len(self._buffer) > _KEEP_BYTES_MAX:
            self._buffer = bytearray(_FIRST_BYTES)
        return taken

    def forget_database(self) -> None:
        """Put SELECT before the next effect: it goes into a new file."""
        self.database = _NO_DATABASE

    # --- Units -------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a unit."""
        if self._depth == 0:
            self._start = self.size
            self._count = 0
        self._depth += 1

    def end(self) -> None:
        """End a unit. If it has more than one effect, put MULTI and EXEC around them."""
        self._depth -= 1
        if self._depth == 0 and self._count > 1:
            self._room(len(_MULTI))
            memory.move(
                self._buffer, self._start + len(_MULTI), self._start, self.size - self._start
            )
            memory.put(self._buffer, self._start, _MULTI)
            self.size += len(_MULTI)
            self._put_raw(_EXEC)
        self._settle()

    def _settle(self) -> None:
        if self._depth == 0:
            self._whole = self.size

    def abandon(self) -> None:
        """Drop the effects of a running or interrupted unit; those of earlier units stay."""
        if self._depth or self.size != self._whole:
            self.size = self._whole
            self._depth = 0
            self.database = _NO_DATABASE  # a SELECT may be among the dropped bytes

    # --- Effects -----------------------------------------------------------------------------------

    def verbatim(self, database: int, frame: Frame) -> None:
        """Add a command that is its own effect."""
        self._begin_effect(database, frame.count)
        self._put_pieces(frame, 0)
        self._settle()

    def words(self, database: int, words: list[bytes]) -> None:
        """Add an effect given by its words."""
        self._begin_effect(database, len(words))
        for word in words:
            self._put_word(word)
        self._settle()

    def added(
        self,
        database: int,
        frame: Frame,
        fields_at: int,
        stream: Stream,
        options: list[bytes] | None,
    ) -> None:
        """Add an XADD with the generated id and the exact trim."""
        count = 3 + frame.count - fields_at
        if options is None and frame.is_as_sent:
            self._select(database)
            size = frame.start(frame.count - 1) + frame.size(frame.count - 1) - frame.start(0)
            at = self._room(size + _ADDED_BYTES_MAX)
            self.size = record_bytes.put_added(self._buffer, at, frame, fields_at, stream)
        else:
            self._begin_effect(database, count if options is None else count + len(options))
            self._add_with_options(frame, fields_at, stream, options)
        self._settle()

    def _add_with_options(
        self, frame: Frame, fields_at: int, stream: Stream, options: list[bytes] | None
    ) -> None:
        self._put_raw(_XADD)
        at = self._room(_HEAD_BYTES_MAX + frame.size(1) + 2)
        self.size = memory.put_bulk(self._buffer, at, frame.buffer, frame.start(1), frame.size(1))
        if options is not None:
            for word in options:
                self._put_word(word)
        at = self._room(_ID_BYTES_MAX)
        self.size = memory.put_bulk_id(self._buffer, at, stream.last_ms_text(), stream.last_seq)
        self._put_pieces(frame, fields_at)

    def delivered(
        self,
        database: int,
        names: tuple[bytes, bytes, bytes],
        group: Group,
        ids: list[bytes],
        when_ms: int,
    ) -> None:
        """Add the XCLAIM and the XGROUP SETID of new deliveries, in one pass."""
        key, group_name, consumer = names
        count = len(ids)
        self._begin_effect(database, _CLAIM_WORDS + count)
        self._count += 1
        size = 2 * (len(key) + len(group_name)) + len(consumer)
        at = self._room(size + _DELIVERY_BYTES_MAX + count * _WORD_BYTES_MAX)
        buffer = self._buffer
        memory.put(buffer, at, _XCLAIM)
        at = memory.put_bulk_bytes(buffer, at + len(_XCLAIM), key)
        at = memory.put_bulk_bytes(buffer, at, group_name)
        at = memory.put_bulk_bytes(buffer, at, consumer)
        memory.put(buffer, at, _NO_IDLE_TIME)
        at += len(_NO_IDLE_TIME)
        for entry_id in ids:
            at = memory.put_bulk_bytes(buffer, at, entry_id)
        memory.put(buffer, at, _TIME)
        at = record_bytes.put_number(buffer, at + len(_TIME), when_ms)
        memory.put(buffer, at, _FIRST_DELIVERY)
        at = record_bytes.put_id(buffer, at + len(_FIRST_DELIVERY), group.last_ms, group.last_seq)
        at = memory.put_head(buffer, at, _ARRAY, _SETID_WORDS)
        memory.put(buffer, at, _SETID)
        at = memory.put_bulk_bytes(buffer, at + len(_SETID), key)
        at = memory.put_bulk_bytes(buffer, at, group_name)
        at = record_bytes.put_id(buffer, at, group.last_ms, group.last_seq)
        memory.put(buffer, at, _ENTRIESREAD)
        self.size = record_bytes.put_number(buffer, at + len(_ENTRIESREAD), group.entries_read)
        self._settle()

    def _begin_effect(self, database: int, count: int) -> None:
        self._select(database)
        self._put_head(count)

    def _select(self, database: int) -> None:
        """An effect begins: put SELECT before it if the previous one was on another database."""
        self._count += 1
        if database != self.database:
            self.database = database
            number = b"%d" % database
            self._put_head(2)
            self._put_word(b"SELECT")
            self._put_word(number)

    def _put_head(self, count: int) -> None:
        at = self._room(_HEAD_BYTES_MAX)
        self.size = memory.put_head(self._buffer, at, _ARRAY, count)

    def _put_pieces(self, frame: Frame, first: int) -> None:
        """Write the pieces of a frame from `first` on."""
        pieces = frame.count - first
        if frame.is_as_sent and pieces:
            start = frame.start(first) - memory.digits(frame.size(first)) - 3
            size = frame.start(frame.count - 1) + frame.size(frame.count - 1) + 2 - start
            at = self._room(size)
            memory.copy(self._buffer, at, frame.buffer, start, size)
            at += size
        else:
            at = self._room(frame.bytes_from(first) + pieces * (_HEAD_BYTES_MAX + 2))
            for index in range(first, frame.count):
                at = memory.put_bulk(
                    self._buffer, at, frame.buffer, frame.start(index), frame.size(index)
                )
        self.size = at

    def _put_word(self, word: bytes) -> None:
        at = self._room(_HEAD_BYTES_MAX + len(word) + 2)
        self.size = memory.put_bulk_bytes(self._buffer, at, word)

    def _put_raw(self, data: bytes) -> None:
        at = self._room(len(data))
        memory.put(self._buffer, at, data)
        self.size = at + len(data)

    def _room(self, size: int) -> int:
        """Make room for `size` bytes; return their place."""
        missing = self.size + size - len(self._buffer)
        if missing > 0:
            self._buffer.extend(bytes(max(missing, len(self._buffer))))
        return self.size
