"""Replays the commands of a log file in an engine.

    #TS:1700000000                         an annotation written by Redis: skipped
    #PSCRC:1:57:8c1f33a0:1042:5c206372     the length and checksum of the 57 bytes after it (batch.py)
    *5 $4 XADD $1 s ...                    a command
    *1 $5 MULTI ... *1 $4 EXEC             commands that are replayed together or not at all

The file is read in pieces into a window that begins at a command (RP1). A batch is replayed only when all of
it was read and its checksum is right, a transaction only when its EXEC was read. The clock stands at 1970
during a replay, so no key expires. Effects that depend on a time carry it as an argument.

There are three kinds of errors:

    torn      at the end of the last file, with no valid batch after it: it may be cut off
    damage    anywhere else: the file is refused, and nothing is changed on disk
    foreign   an unsupported command or type: refused as well, because its data would be missing

A file written by Redis has no batches. In such a file only three things are known to be torn: an incomplete
command at the very end, an incomplete transaction, and zeros up to the end. Redis accepts the same three.

Invariants
  RP1  `_start` is the offset of the window's first byte in the file, and a command or a batch begins there.
  RP2  a command is executed only after its batch's checksum was checked, if it has a batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable

from penstock.core.frame import Frame
from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.errors import CommandError, CorruptData, ProtocolError
from penstock.persist import replication_point
from penstock.persist.aof import batch
from penstock.persist.aof.effect_runner import BadOrder, EffectRunner
from penstock.persist.disk import Source
from penstock.persist.reading import PIECE_BYTES, read_into
from penstock.persist.replication_point import ReplicationPoint
from penstock.wire.parser import Parser, WireLimits

_STAR = 42
_HASH = 35
_ONE, _NINE = 49, 57
_ANNOTATION_BYTES_MAX = 1024
_TIME = b"#TS:"


class Torn(Exception):
    """The end of a file is incomplete, and no valid batch follows. The file may be cut at `offset`."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(why)
        self.offset = offset
        self.why = why


class Replay:
    """Replays files in an engine.

    Counters: commands, batches, unvouched (commands outside of batches). `database`: the one selected at the
    end of the last file. `point`: where the data now is in a replication history. A command that the engine
    refuses ends the replay. If `on_refused` is set, it is called instead, and the command is skipped.
    """

    __slots__ = (
        "_at",
        "_batched",
        "_context",
        "_end",
        "_frame",
        "_multi_at",
        "_name",
        "_on_piece",
        "_parser",
        "_runner",
        "_source",
        "_start",
        "_window",
        "batches",
        "database",
        "lines_crc",
        "on_refused",
        "point",
        "unvouched",
    )

    def __init__(
        self, engine: Engine, rows: Iterable[Command], on_piece: Callable[[int], None] | None = None
    ) -> None:
        """`on_piece`: called after each read with the number of bytes."""
        self._context = engine.context
        self._runner = EffectRunner(engine, rows)
        self._runner.on_refused = self._meet_refusal
        self._on_piece = on_piece
        self._parser = Parser(WireLimits())
        self._frame = Frame()
        self._batched = False
        self.batches = 0
        self.unvouched = 0
        self.database = 0
        self.lines_crc = 0  # of the last file (increment.py)
        self.point: ReplicationPoint | None = None
        self.on_refused: Callable[[CorruptData], None] | None = None

    def run(self, source: Source, name: str, first: bytes = b"", offset: int = 0) -> None:
        """Replay a file. `first`: bytes from `offset` on that the caller has already read.

        Raises: Torn, CorruptData, OSError.
        """
        self._source = source
        self._name = name
        self._window = bytearray(first)
        self._end = len(first)
        self._start = offset
        self._at = offset  # the offset of the current command or line
        self._batched = False  # the last thing read was a batch
        self._multi_at = -1
        self.lines_crc = 0
        self._parser = Parser(WireLimits())
        context = self._context
        context.replaying = True
        context.instant.rewind()
        self._runner.start()
        try:
            while self._more(1):
                self._run_next()
            if self._multi_at >= 0:
                raise Torn(self._multi_at, "the transaction that begins there has no EXEC")
        finally:
            context.replaying = False
            self.database = context.keyspace.index
            context.keyspace = context.databases[0]
            context.instant.advance()

    @property
    def commands(self) -> int:
        """The number of commands replayed."""
        return self._runner.commands

    def is_batched(self) -> bool:
        """Tell whether the last file ends with a batch."""
        return self._batched

    # --- The window ----------------------------------------------------------------------------------

    def _more(self, count: int) -> bool:
        """Read on until `count` bytes follow the parser's place; False if the file ends before."""
        at = self._parser.start
        if self._end - at >= count:
            return True
        if self._parser.left == 0 and at:
            del self._window[:at]
            self._end -= at
            self._start += at
            self._parser.rest_moved(at)
        return self._fill(count - (self._end - self._parser.start))

    def _fill(self, missing: int) -> bool:
        """Append at least `missing` bytes to the window; False if the file ends before."""
        got = 0
        count = PIECE_BYTES
        # Piece by piece, because a damaged length may be more than there is memory.
        while got < missing and count == PIECE_BYTES:
            self._window.extend(bytes(PIECE_BYTES))
            count = read_into(
                self._source, memoryview(self._window)[self._end : self._end + PIECE_BYTES]
            )
            self._end += count
            got += count
            del self._window[self._end :]
            if self._on_piece is not None and count:
                self._on_piece(count)
        return got >= missing

    # --- What is next --------------------------------------------------------------------------------

    def _run_next(self) -> None:
        """Replay the batch or the single command at the parser's place."""
        self._at = self._start + self._parser.start
        char = self._window[self._parser.start]
        if char == _HASH:
            self._skip_annotation()
        elif char == _STAR:
            self._run_plain()
            self._batched = False
        else:
            self._refuse(f"byte {char:#04x} where a command should begin")

    def _skip_annotation(self) -> None:
        """Skip an annotation. If it is the line of a batch, check the batch and replay it."""
        self._more(_ANNOTATION_BYTES_MAX)  # this may move the window
        at = self._parser.start
        until = min(self._end, at + _ANNOTATION_BYTES_MAX)
        line_end = self._window.find(b"\n", at, until)
        if line_end < 0:
            self._refuse("an annotation that does not end")
        line = bytes(self._window[at : line_end + 1])
        if not line.startswith(batch.HEAD):
            if batch.is_damaged(line) or (self._batched and not line.startswith(_TIME)):
                self._refuse("an annotation that nobody writes")
            self._step_to(line_end + 1)
            return
        found = batch.parse_batch_or_none(line, self._at)
        if batch.is_newer(line):
            raise self._damage("a batch of a later version of penstock: use that one")
        if found is None:
            self._refuse("a line that should vouch for a batch, but does not")
        elif not self._more(found.head_bytes + found.size):
            self._refuse(f"a batch of {found.size} bytes of which a part is missing")
        else:
            self._run_batch(found)

    def _run_batch(self, found: batch.Batch) -> None:
        body = self._parser.start + found.head_bytes
        until = body + found.size
        view = memoryview(self._window)
        crc = zlib.crc32(view[body:until])
        view.release()  # a window with a view on it cannot grow
        if crc != found.crc:
            self._refuse("a batch whose checksum is wrong")
        line = bytes(self._window[self._parser.start : body])
        self.lines_crc = zlib.crc32(line, self.lines_crc)
        self._step_to(body)
        self._batched = True
        self.batches += 1
        while self._parser.start < until:
            if self._window[self._parser.start] == _HASH:
                self._skip_line(until)
                continue
            try:
                whole = self._parse(until)
            except ProtocolError as error:
                raise self._damage(f"{error}, though the checksum is right") from error
            if not whole:
                raise self._damage(
                    "a batch that ends within a command, though its checksum is right"
                )
            self._run_command()
        if self._multi_at >= 0:
            raise self._damage("a batch that ends within a transaction")

    def _skip_line(self, until: int) -> None:
        """Skip a line within a batch. It may say where the data now is in a replication history."""
        at = self._parser.start
        end = self._window.find(b"\n", at, until) + 1 or until
        line = bytes(self._window[at:end])
        if line.startswith(replication_point.HEAD):
            self.point = replication_point.parse_point_or_none(line)
        self._step_to(end)

    def _run_plain(self) -> None:
        """Replay a command outside of a batch, reading on until it is complete."""
        try:
            while not self._parse(self._end):
                if not self._fill(1):
                    torn_at = self._at if self._multi_at < 0 else self._multi_at
                    raise Torn(torn_at, "the file ends within a command")
        except ProtocolError as error:
            self._refuse(str(error))
        self.unvouched += 1
        self._run_command()

    def _parse(self, until: int) -> bool:
        """Parse a command; False if a part is missing. Raises: ProtocolError."""
        parser = self._parser
        if parser.left == 0:
            at = parser.start
            self._at = self._start + at
            if at + 1 >= until:
                return False
            digit = self._window[at + 1]
            if self._window[at] != _STAR or digit < _ONE or digit > _NINE:
                raise ProtocolError("these bytes are not a command")
        return parser.next(self._frame, self._window, until)

    def _step_to(self, place: int) -> None:
        """Move the parser to a place in the window."""
        self._parser.rest_moved(self._parser.start - place)

    # --- Doing it ------------------------------------------------------------------------------------

    def _run_command(self) -> None:
        runner = self._runner
        self.point = None  # unless a line behind the command says otherwise
        try:
            runner.run(self._frame)
        except BadOrder as error:
            raise self._damage(str(error)) from error
        if not runner.in_transaction:
            self._multi_at = -1
        elif self._multi_at < 0:
            self._multi_at = self._at

    # --- What is wrong -------------------------------------------------------------------------------

    def _refuse(self, what: str) -> None:
        """Report an error at the current offset: torn if no valid batch follows, otherwise damage.

        Raises: Torn or CorruptData.
        """
        while self._fill(1):
            pass
        offset = self._at
        rest = bytes(self._window[offset - self._start : self._end])
        if not rest.strip(b"\0"):
            raise Torn(offset, f"the last {len(rest)} bytes are zeros")
        # Without batches, a torn end cannot be told from damage.
        if not self._batched and not rest.startswith(batch.HEAD[: len(rest)]):
            raise self._damage(what)
        sound = batch.count_whole(rest, batch.behind_damage(rest, 0, offset), offset)
        if sound:
            raise self._damage(f"{what}, and {sound} sound batches follow it")
        raise Torn(offset, what)

    def _damage(self, what: str) -> CorruptData:
        return CorruptData(f"{self._name}: {what}", self._at)

    def _meet_refusal(self, frame: Frame, error: CommandError) -> None:
        """Call `on_refused`. Raises: CorruptData if it is not set."""
        words = b" ".join(frame.piece(at) for at in range(min(frame.count, 4)))[:100]
        shown = words.decode("utf-8", "backslashreplace")
        refusal = CorruptData(f"{self._name}: {shown}: {error}", self._at)
        if self.on_refused is None:
            raise refusal from error
        self.on_refused(refusal)
