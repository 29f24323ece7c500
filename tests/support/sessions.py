"""A whole server in this process, without sockets and without waiting: sessions on links that only note.

    hall = Hall()
    client = hall.client()
    client.ask("XADD s * k v")          -> the reply, as raw_redis reads it
    client.send("XREAD BLOCK 0 STREAMS s $"), hall.advance(100), client.replies()

The loop's time is the server's clock, and stands still unless a test moves it.
"""

from __future__ import annotations

import heapq
import io
from collections.abc import Callable, Iterable
from typing import Any

from penstock.engine.clock import ManualClock
from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.server.server import Server
from penstock.server.session import Session
from penstock.server.table import ROWS
from tests.support.engines import START_MS
from tests.support.raw_redis import encode, read_reply


class Alarm:
    """A call that was put off."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualLoop:
    """An event loop that a test turns."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._soon: list[Callable[[], None]] = []
        self._alarms: list[tuple[int, int, Alarm]] = []
        self._made = 0

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Alarm:
        alarm = Alarm(callback)
        self._made += 1
        heapq.heappush(self._alarms, (self._clock.at_ms + round(delay * 1000), self._made, alarm))
        return alarm

    def turn(self) -> None:
        """Run what is due, and what that asks for."""
        while self._alarms and self._alarms[0][0] <= self._clock.at_ms:
            alarm = heapq.heappop(self._alarms)[2]
            if alarm.callback is not None:
                alarm.callback()
        while self._soon:
            soon, self._soon = self._soon, []
            for callback in soon:
                callback()


class ManualLink:
    """A socket that notes what is written, and keeps what the session has not read."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.written = bytearray()
        self.unread = bytearray()
        self.closed = False
        self.unsent = 0

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._session.end()

    def abort(self) -> None:
        self.close()

    def go_on(self) -> None:
        self.receive(b"")

    def unsent_bytes(self) -> int:
        return self.unsent

    def kept_bytes(self) -> tuple[int, int]:
        return len(self.unread), len(self.unread)

    def receive(self, data: bytes) -> None:
        """Bytes from the client; what makes no command yet, or may not run yet, is kept."""
        self.unread += data
        buffer = bytearray(self.unread)
        self._session.feed(buffer, len(buffer))
        start = self._session.parser.start
        self._session.parser.rest_moved(start)
        del self.unread[:start]
        if self._session.parser.left:
            self._session.frame.move_to(self.unread, start)


class Client:
    """One client and its session."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self.session = Session(hall.server)
        self.link = ManualLink(self.session)
        self.session.open(self.link)

    def send(self, *words: bytes | str | int) -> None:
        """Send a command; a single text is split at its blanks."""
        if len(words) == 1 and isinstance(words[0], str):
            words = tuple(words[0].split())
        pieces = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.link.receive(encode(pieces))
        self._hall.loop.turn()

    def ask(self, *words: bytes | str | int) -> Any:
        """Send a command and return its reply, which must come at once and alone."""
        self.send(*words)
        [reply] = self.replies()
        return reply

    def replies(self) -> list[Any]:
        """All that has come and was not looked at yet."""
        taken = io.BytesIO(bytes(self.link.written))
        self.link.written.clear()
        found = []
        while taken.tell() < len(taken.getvalue()):
            found.append(read_reply(taken))
        return found


class Hall:
    """A server and its clients."""

    def __init__(self, compat_version: str | None = None, rows: Iterable[Command] = ROWS) -> None:
        self.clock = ManualClock(START_MS)
        self.loop = ManualLoop(self.clock)
        self.engine = Engine(self.clock, compat_version)
        self.server = Server(self.engine, rows, self.loop)

    def client(self) -> Client:
        return Client(self)

    def advance(self, ms: int) -> None:
        """Let time pass."""
        self.clock.at_ms += ms
        self.engine.context.instant.advance()
        self.loop.turn()
