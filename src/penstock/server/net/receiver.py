"""Receives one client's bytes and splits them into commands. Owns the buffers, the parser and the frame.

All connections receive into one shared buffer, the inbox: usually the bytes are a number of whole commands,
which run before the next socket is read. Only an incomplete rest is kept.

    room()        the place for the next bytes: in the inbox, or in the client's own large buffer
    received(n)   n bytes were received there
    next()        parse the next command into `frame`
    keep_rest()   when no command can run any more: keep the bytes that are left

    kept bytes      where they are
    none            nowhere: the client has no buffer
    up to 16 KB     in a buffer of exactly their size; room() copies them to the front of the inbox
    more            in a large buffer, and room() is the space behind them

A client that has sent half a command therefore costs as much memory as it has sent. A large buffer is
released with the command that needed it.

While the event loop receives, it holds a view of the buffer. The buffer can then be written but not resized,
so a larger one is a new one.

Invariants
  NR1  outside of received() .. keep_rest(): `_buffer` is the inbox and `_end` is 0, or `_buffer` is the
       client's own and holds the kept bytes from `_parser.start` to `_end`.
  NR2  an own buffer of up to SMALL_BYTES holds exactly the kept bytes: `_parser.start` is 0.
"""

from __future__ import annotations

from penstock.core import memory
from penstock.core.frame import Frame
from penstock.wire.parser import Parser, WireLimits

SLICE_BYTES = 16 * 1024  # read from a socket per turn; see benchmarks/fairness.py
SMALL_BYTES = 16 * 1024  # a rest up to this size is copied to the inbox rather than read behind
LARGE_SLICE_BYTES = 256 * 1024  # of a large argument: it is only copied, no command runs

_SLICE_BYTES = SLICE_BYTES
_SMALL_BYTES = SMALL_BYTES
_LARGE_SLICE_BYTES = LARGE_SLICE_BYTES


class Inbox:
    """The buffer that all connections of a loop receive into: a small rest, and a slice behind it."""

    __slots__ = ("buffer", "first", "view")

    def __init__(self) -> None:
        self.buffer = bytearray(SMALL_BYTES + SLICE_BYTES)
        self.view = memoryview(self.buffer)
        self.first = self.view[:SLICE_BYTES]


class Receiver:
    """The incoming bytes of one client. `frame` is the command that next() parsed last."""

    __slots__ = ("_buffer", "_end", "_inbox", "_offered", "_parser", "frame")

    def __init__(self, inbox: Inbox, limits: WireLimits) -> None:
        self._inbox = inbox
        self._buffer = inbox.buffer
        self._end = 0
        self._offered = 0  # size of the room that the socket was given
        self._parser = Parser(limits)
        self.frame = Frame()

    # --- Receiving ---------------------------------------------------------------------------------

    def room(self) -> memoryview:
        """The place for the next bytes."""
        size = self._end
        if size <= _SMALL_BYTES:
            self._offered = _SLICE_BYTES
            if size == 0:
                return self._inbox.first
            memory.copy(self._inbox.buffer, 0, self._buffer, 0, size)
            return self._inbox.view[size : size + _SLICE_BYTES]
        if size == len(self._buffer):
            self._grow()
            size = self._end
        view = memoryview(self._buffer)[size : size + _LARGE_SLICE_BYTES]
        self._offered = len(view)
        return view

    def received(self, count: int) -> bool:
        """`count` bytes were received into room(); True if they fill it, so that the socket may have more."""
        if self._end <= _SMALL_BYTES:
            self._buffer = self._inbox.buffer
            if self._parser.left:
                self.frame.move_to(self._buffer, 0)
        self._end += count
        return count == self._offered

    # --- Parsing -----------------------------------------------------------------------------------

    def next(self) -> bool:
        """Parse the next command into `frame`; False if it is incomplete. Raises: ProtocolError."""
        return self._parser.next(self.frame, self._buffer, self._end)

    def rest_bytes(self) -> int:
        """How many bytes are left that no command was parsed from."""
        return self._end - self._parser.start

    def starts_with(self, data: bytes) -> bool:
        """Tell whether the rest starts with these bytes."""
        start = self._parser.start
        return self._buffer[start : min(start + len(data), self._end)] == data

    def last_frame_or_none(self) -> Frame | None:
        """The last command, unless a part of the next one has overwritten it."""
        parser = self._parser
        is_intact = parser.start == self._end and parser.left == 0 and self.frame.count > 0
        return self.frame if is_intact else None

    def restrict(self, is_stranger: bool) -> None:
        """Allow only the small commands of a client that has not authenticated, or lift that."""
        self._parser.stranger = is_stranger

    # --- Keeping -----------------------------------------------------------------------------------

    def keep_rest(self) -> bool:
        """Keep the bytes that are left; True if the client's memory should be counted again."""
        parser = self._parser
        buffer = self._buffer
        start = parser.start
        size = self._end - start
        is_own = buffer is not self._inbox.buffer
        if size == 0:
            parser.rest_moved(start)
            self._buffer = self._inbox.buffer
            self._end = 0
        elif size <= _SMALL_BYTES:
            if start or not is_own or len(buffer) != size:
                self._move(bytearray(size))
        elif not is_own:
            self._move(bytearray(self._room_for(size)))
        elif start > size:
            # Only now, so that fewer bytes are moved than were parsed since the last move.
            fits = len(buffer) <= 4 * size
            self._move(buffer if fits else bytearray(2 * size))
        if size > _SMALL_BYTES or (is_own and len(buffer) > _SMALL_BYTES):
            return True
        return parser.stranger and (is_own or size > 0)

    def drop(self) -> None:
        """Drop all bytes: the client is gone."""
        self._buffer = self._inbox.buffer
        self._parser.rest_moved(self._parser.start)
        self._end = 0

    def kept_bytes(self) -> tuple[int, int]:
        """How many bytes are kept, and the size of the buffer that they are in."""
        if self._buffer is self._inbox.buffer:
            return 0, 0
        return self.rest_bytes(), len(self._buffer)

    def _grow(self) -> None:
        """Move the kept bytes from a full buffer to a larger one."""
        self._move(bytearray(self._room_for(self.rest_bytes())))

    def _room_for(self, size: int) -> int:
        """The size of a buffer for this many bytes: by what has arrived, not by what is announced."""
        parser = self._parser
        room = 2 * size
        if parser.bulk >= 0:
            needed = parser.at - parser.start + parser.bulk + 2
            if size < needed < room:
                return needed
        return room

    def _move(self, target: bytearray) -> None:
        """Move the rest to the beginning of another buffer, or of the same."""
        start = self._parser.start
        size = self._end - start
        if target is self._buffer:
            memory.move(target, 0, start, size)
        else:
            memory.copy(target, 0, self._buffer, start, size)
        if self._parser.left:
            self.frame.move_to(target, start)
        self._parser.rest_moved(start)
        self._buffer = target
        self._end = size
