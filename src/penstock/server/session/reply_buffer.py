"""The replies of one client on their way to its socket.

    output      replies are encoded here while commands run
    set aside   pieces of a megabyte: one buffer need not grow
    taken       at the end of the turn; with `appendfsync always` turn.py holds them until the log is synced
    sent        written to the socket, or through its transport if the socket has no room

Pushes (messages, confirmations of SUBSCRIBE) reach even a client that wants no replies (CLIENT REPLY OFF).
While a command runs, `mark` is where its reply begins, so that the reply can be removed and the push stays.
"""

from __future__ import annotations

from typing import Any

from penstock.core import memory
from penstock.errors import PenstockError
from penstock.server.net import direct
from penstock.wire.encoder import Encoder
from penstock.wire.reply_walk import refuse_all

SPILL_BYTES = 1 << 20

_SPILL_BYTES = SPILL_BYTES


class ReplyBuffer:
    """The unsent replies of one client.

    aside_bytes   set aside in this turn
    taken_bytes   taken at the end of a turn and not sent yet
    mark          where the reply of the running command begins; -1 between commands
    """

    __slots__ = ("_late", "aside", "aside_bytes", "mark", "output", "taken_bytes")

    def __init__(self) -> None:
        self.output = Encoder()
        self.aside: list[bytes] = []
        self.aside_bytes = 0
        self.taken_bytes = 0
        self.mark = -1
        self._late: list[Any] = []  # pushes that follow the reply of the running command

    def begin_reply(self) -> None:
        """A command starts."""
        self.mark = self.output.size

    def end_reply(self) -> None:
        """The command has ended."""
        self.mark = -1
        if self._late:
            for push in self._late:
                self.output.put(push)
            self._late = []

    def remove_reply(self) -> None:
        """Remove what the running command has written, except pushes."""
        self.output.cut_back(self.mark)

    def push(self, push: Any, is_silent: bool) -> None:
        """Write a push. `is_silent`: the reply of the running command will be removed."""
        if self.mark >= 0 and is_silent:
            self.remove_reply()
            self.output.put(push)
            self.mark = self.output.size
        else:
            self.output.put(push)

    def push_late(self, push: Any) -> None:
        """Write a push after the reply of the running command."""
        self._late.append(push)

    def is_empty(self) -> bool:
        """Tell whether there is nothing to send at the end of this turn."""
        return self.output.size == 0 and self.aside_bytes == 0

    def spill(self) -> bool:
        """Set the encoded replies aside if there are many; True if so."""
        size = self.output.size
        if size <= _SPILL_BYTES:
            return False
        self.aside.append(self.output.take())
        self.aside_bytes += size
        return True

    def take(self) -> list[bytes]:
        """Take everything, to deliver it now or later."""
        pieces = self.aside
        if self.output.size:
            self.aside_bytes += self.output.size
            pieces.append(self.output.take())
        self.taken_bytes += self.aside_bytes
        self.aside = []
        self.aside_bytes = 0
        return pieces

    def send(self, fd: int) -> int:
        """Send the encoded replies directly to a socket; return how many bytes it took. The rest stays."""
        output = self.output
        size = output.size
        sent = direct.send(fd, output.buffer, size)
        rest = b"" if sent == size else memory.cut(output.buffer, sent, size - sent)
        output.clear()
        output.put_raw(rest)
        return sent

    def give_out(self, pieces: list[bytes]) -> int:
        """Taken pieces are about to be sent; return their size."""
        size = 0
        for piece in pieces:
            size += len(piece)
        self.taken_bytes -= size
        return size

    def exchange(self, pieces: list[bytes], other: bytes) -> list[bytes]:
        """Replace taken pieces by other bytes."""
        self.taken_bytes += len(other) - sum(len(piece) for piece in pieces)
        return [other] if other else []

    def refuse_finished(self, error: PenstockError, spared: tuple[bytes, ...]) -> None:
        """Replace the replies of this turn by an error each, except that of the running command."""
        encoded = self.output.take()
        end = len(encoded) if self.mark < 0 else self.mark
        refused = refuse_all(b"".join([*self.aside, encoded[:end]]), error, spared)
        self.aside, self.aside_bytes = ([refused] if refused else []), len(refused)
        self.output.put_raw(encoded[end:])
        self.mark = min(self.mark, 0)

    def unsent_bytes(self) -> int:
        """The size of everything that the socket has not been given yet."""
        return self.taken_bytes + self.aside_bytes + self.output.size

    def clear(self) -> None:
        """Drop everything that was not taken."""
        self.aside, self.aside_bytes = [], 0
        self.output.clear()
