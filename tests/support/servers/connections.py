"""A server without sockets: real connections on fake transports and a loop that the test drives.

    server = ServerBench()
    client = server.connect()
    client.ask("PING")              -> b"+PONG\\r\\n", the bytes
    client.reply("XADD s * k v")    -> the reply, parsed by raw_redis
    client.tell("XREAD BLOCK 0 STREAMS s $"), server.advance(100), client.replies()

The server's clock stands still unless a test moves it.
"""

from __future__ import annotations

import heapq
import io
import itertools
import select
from collections.abc import Callable, Iterable
from typing import Any

from penstock.engine.clock import ManualClock
from penstock.engine.execute import Engine
from penstock.engine.table import Command
from penstock.server.command_table import ROWS
from penstock.server.lifecycle import StopRequest
from penstock.server.net.connection import Connection
from penstock.server.server import Server
from tests.support.engine.engines import START_MS
from tests.support.servers.raw_redis import encode, read_reply

HIGH_WATER_BYTES = 64 * 1024  # where asyncio calls pause_writing


def encoded(*words: bytes | str) -> bytes:
    """A command as clients send it."""
    return encode([word.encode() if isinstance(word, str) else word for word in words])


class ManualTimer:
    """A scheduled call."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualLoop:
    """An event loop on a ManualClock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._soon: list[Callable[[], None]] = []
        self._later: list[tuple[float, int, ManualTimer]] = []
        self._readers: dict[int, Callable[[], None]] = {}
        self._numbers = itertools.count()

    def call_soon(self, callback: Callable[[], None]) -> object:
        self._soon.append(callback)
        return callback

    def call_later(self, delay: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(callback)
        at_ms = self._clock.at_ms + delay * 1000
        heapq.heappush(self._later, (at_ms, next(self._numbers), timer))
        return timer

    def call_soon_threadsafe(self, callback: Callable[..., None], *arguments: object) -> object:
        return self.call_soon(lambda: callback(*arguments))

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        self._readers[fd] = callback

    def remove_reader(self, fd: int) -> None:
        del self._readers[fd]

    def wait_for_files(self) -> None:
        """Wait until a watched file is readable, and run the callbacks."""
        assert self._readers, "would wait forever"
        ready, _, _ = select.select(list(self._readers), [], [])
        for fd in ready:
            self._readers[fd]()
        self.run()

    def run(self) -> None:
        """Run all callbacks that are due."""
        while True:
            if self._later and self._later[0][0] <= self._clock.at_ms:
                timer = heapq.heappop(self._later)[2]
                if timer.callback is not None:
                    self._soon.append(timer.callback)
            elif not self._soon:
                return
            soon, self._soon = self._soon, []
            for callback in soon:
                callback()

    def step(self) -> None:
        """Run one iteration: the due callbacks, but not those they schedule."""
        soon, self._soon = self._soon, []
        for callback in soon:
            callback()

    def advance(self, ms: int) -> None:
        """Advance the time."""
        self._clock.at_ms += ms
        self.run()


class ManualTransport:
    """The socket's side of a connection; a client that reads takes the written bytes at once."""

    def __init__(self, loop: ManualLoop, extra: dict[str, Any]) -> None:
        self._loop = loop
        self._extra = extra
        self.protocol: Connection | None = None
        self.reads = True
        self.unsent = bytearray()
        self.taken = bytearray()
        self.closing = False
        self.lost = False
        self.paused = False
        self.incoming = bytearray()  # sent by the client and not read by the server
        self.ended = False  # the client has ended its input

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        if self.paused and not self.closing:
            self.paused = False
            self._loop.call_soon(self.arrive)

    def arrive(self) -> None:
        """Deliver the client's bytes while the server reads."""
        assert self.protocol is not None
        while self.incoming and not self.closing and not self.paused:
            view = self.protocol.get_buffer(-1)
            size = min(len(view), len(self.incoming))
            view[:size] = self.incoming[:size]
            del self.incoming[:size]
            self.protocol.buffer_updated(size)
        if self.ended and not self.closing and not self.paused:
            self.ended = False
            if not self.protocol.eof_received():
                self.close()

    def get_extra_info(self, name: str) -> Any:
        return self._extra.get(name)

    def get_write_buffer_size(self) -> int:
        return len(self.unsent)

    def write(self, data: bytes) -> None:
        assert self.protocol is not None
        if self.closing:
            return
        before = len(self.unsent)
        self.unsent += data
        if self.reads:
            self.take()
        elif before <= HIGH_WATER_BYTES < len(self.unsent):
            self.protocol.pause_writing()

    def take(self) -> None:
        """The client reads everything."""
        assert self.protocol is not None
        was_full = len(self.unsent) > HIGH_WATER_BYTES
        self.taken += self.unsent
        self.unsent.clear()
        if was_full:
            self.protocol.resume_writing()
        if self.closing:
            self._lose()

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            if not self.unsent:
                self._lose()

    def abort(self) -> None:
        self.closing = True
        self.unsent.clear()
        self._lose()

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            assert self.protocol is not None
            protocol = self.protocol
            self._loop.call_soon(lambda: protocol.connection_lost(None))


class ManualClient:
    """One client of a ServerBench."""

    def __init__(self, bench: ServerBench, extra: dict[str, Any]) -> None:
        self._loop = bench.loop
        self.transport = ManualTransport(bench.loop, extra)
        self.connection = Connection(bench.server)
        self.transport.protocol = self.connection
        self.connection.connection_made(self.transport)
        self.session = self.connection.session

    def put(self, data: bytes) -> None:
        """Send bytes without ending the turn."""
        self.transport.incoming += data
        self.transport.arrive()

    def send(self, data: bytes) -> bytes:
        """Send bytes, end the turn, and return the received bytes."""
        self.put(data)
        return self.heard()

    def run(self, *words: bytes | str) -> bytes:
        """Run a command and return its reply as bytes."""
        return self.send(encoded(*words))

    def ask(self, line: str) -> bytes:
        """As run, with the arguments in one text."""
        return self.run(*line.split())

    def tell(self, *words: bytes | str | int) -> None:
        """Send a command and end the turn; a single text is split at spaces."""
        if len(words) == 1 and isinstance(words[0], str):
            words = tuple(words[0].split())
        self.put(encode([w if isinstance(w, bytes) else str(w).encode() for w in words]))
        self._loop.run()

    def reply(self, *words: bytes | str | int) -> Any:
        """Run a command and return its only reply."""
        self.tell(*words)
        [reply] = self.replies()
        return reply

    def replies(self) -> list[Any]:
        """All replies since the last call."""
        heard = self.heard()
        taken = io.BytesIO(heard)
        found = []
        while taken.tell() < len(heard):
            found.append(read_reply(taken))
        return found

    def heard(self) -> bytes:
        """End the turn, and return the bytes since the last call."""
        self._loop.run()
        heard = bytes(self.transport.taken)
        self.transport.taken.clear()
        return heard

    def end_input(self) -> None:
        """End the input."""
        self.transport.ended = True
        self.transport.arrive()

    def vanish(self) -> None:
        """Disconnect."""
        self.transport.abort()
        self._loop.run()

    @property
    def closed(self) -> bool:
        return self.transport.lost


class RecordingLifecycle:
    """Records what a server asks of its owner: `stops` and `broken`."""

    def __init__(self) -> None:
        self.stops: list[StopRequest | None] = []
        self.broken: list[str] = []

    def request_stop(self, request: StopRequest | None = None) -> None:
        self.stops.append(request)

    def abort_stop(self) -> bool:
        return False

    def report_broken(self, command: str) -> None:
        self.broken.append(command)


class ServerBench:
    """A server with a clock and a loop that the test drives."""

    def __init__(
        self,
        compat_version: str | None = None,
        rows: Iterable[Command] = ROWS,
        clock: ManualClock | None = None,
    ) -> None:
        self.clock = ManualClock(START_MS) if clock is None else clock
        self.engine = Engine(self.clock, compat_version)
        self.loop = ManualLoop(self.clock)
        self.server = Server(self.engine, rows, self.loop)
        self._ports = itertools.count(50001)

    def connect(self, extra: dict[str, Any] | None = None) -> ManualClient:
        """A new client."""
        if extra is None:
            peer, local = ("127.0.0.1", next(self._ports)), ("127.0.0.1", 6379)
            extra = {"peername": peer, "sockname": local}
        return ManualClient(self, extra)

    def advance(self, ms: int) -> None:
        """Advance the time."""
        self.loop.advance(ms)
