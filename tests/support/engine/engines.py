"""Runs commands on an engine in one line, and returns replies as a RESP2 client sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.check import check_stream
from penstock.core.frame import Frame
from penstock.core.stream import Stream
from penstock.core.stream_cursor import EntryRange
from penstock.engine.clock import ManualClock
from penstock.engine.execute import TABLE, Engine
from penstock.engine.keyspace import Keyspace, Watch
from penstock.engine.lookup import Lookup
from penstock.engine.table import Command
from penstock.engine.waiters import Blocked, Waiter
from penstock.errors import CommandError
from penstock.reply import Pairs, Served, Status
from tests.support.engine.keyspace_events import EventRecorder
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import Refusal

LOOKUP = Lookup(TABLE.values())
START_MS = 1_700_000_000_000
STRING_KEY = b"string"  # a key that holds no stream

INVALID_ID = "ERR Invalid stream ID specified as stream command argument"
NOT_A_NUMBER = "ERR value is not an integer or out of range"
SYNTAX = "ERR syntax error"
NO_SUCH_KEY = "ERR no such key"
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


class Bench:
    """An engine with its own clock, and one key that is not a stream (STRING_KEY)."""

    def __init__(self, compat_version: str | None = None, start_ms: int = START_MS) -> None:
        self.clock = ManualClock(start_ms)
        self.engine = Engine(self.clock, compat_version)
        self.engine.context.keyspace.values[STRING_KEY] = b"no stream"

    def run(self, *words: bytes | str | int) -> Any:
        """The reply to a command as a client sees it. An error is returned as a Refusal."""
        try:
            command, pieces = command_of(words)
            return plain(self.engine.execute(command, frame_of(*pieces)))
        except CommandError as error:
            return Refusal(error.wire_text)

    def ask(self, line: str) -> Any:
        """Like run, for words without blanks."""
        return self.run(*line.split())

    def park(self, line: str) -> Reader:
        """Run a command that must block, and leave it waiting."""
        command, pieces = command_of(line.split())
        blocked = self.engine.execute(command, frame_of(*pieces))
        assert isinstance(blocked, Blocked), f"{line} did not block: {blocked}"
        reader = Reader(command, blocked, self.engine.context.keyspace)
        self.engine.park(reader)
        return reader

    def replace(self, key: str, value: object | None) -> None:
        """Replace or remove the value of a key, as a command like SET or DEL does."""
        keyspace = self.engine.context.keyspace
        keyspace.remove(key.encode())
        if value is not None:
            keyspace.put(key.encode(), value)
        self.engine.context.touch(key.encode())
        self.engine.serve_waiters()

    def listen(self) -> EventRecorder:
        """Record every event from now on."""
        return EventRecorder(self.engine)

    def watch(self, key: str = "s") -> Watch:
        """Watch a key, as WATCH does."""
        watch = Watch()
        self.engine.context.keyspace.watch(key.encode(), watch)
        self.engine.context.watching += 1
        return watch

    def stream(self, key: str = "s") -> Stream:
        stream = self.engine.context.keyspace.stream_or_none(key.encode())
        assert stream is not None
        return stream

    def state(self) -> list[Any]:
        """Check every stream, and return all that XINFO STREAM FULL says about each."""
        found: list[Any] = []
        for key, value in sorted(self.engine.context.keyspace.values.items()):
            if isinstance(value, Stream):
                check_stream(value)
                found += [key, self.run("XINFO", "STREAM", key, "FULL", "COUNT", 0)]
        return found


def grouped(*entry_ids: str, version: str | None = None) -> Bench:
    """A bench with a stream s of entries k=v with these ids, and a group g that has read none of them."""
    bench = Bench(version)
    for entry_id in entry_ids:
        bench.run("XADD", "s", entry_id, "k", "v")
    bench.ask("XGROUP CREATE s g 0 MKSTREAM")
    return bench


def assert_refused(bench: Bench, line: str, text: str) -> None:
    """Check that a command is refused with this text and changes nothing."""
    before = bench.state()
    assert bench.ask(line) == Refusal(text)
    assert bench.state() == before


class Reader(Waiter):
    """A blocked read that stores its reply in `got`, and counts how often it ran again and was woken."""

    def __init__(self, command: Command, blocked: Blocked, keyspace: Keyspace) -> None:
        super().__init__(command, blocked, keyspace)
        self.timeout_ms = blocked.timeout_ms
        self.woken = 0
        self.runs = 0
        self.got: Any = None

    @property
    def frame(self) -> Frame:
        """The engine takes the command each time it runs."""
        self.runs += 1
        return self._frame

    @frame.setter
    def frame(self, frame: Frame) -> None:
        self._frame = frame

    def wake(self) -> None:
        self.woken += 1
        if isinstance(self.error, CommandError):
            self.got = Refusal(self.error.wire_text)
        else:
            self.got = plain(self.reply)


def command_of(words: Sequence[bytes | str | int]) -> tuple[Command, list[bytes]]:
    """The row of the command table for these words, and the words as bytes."""
    pieces = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return LOOKUP.find(frame_of(*pieces)), pieces


def plain(reply: Any) -> Any:
    """A reply in its RESP2 shape: maps become flat lists, other collections become lists."""
    if isinstance(reply, Status):
        return reply.text
    if isinstance(reply, Pairs):
        return [plain(half) for pair in reply.items for half in pair]
    if isinstance(reply, Served):
        return [plain(pair) for pair in reply.items]
    if isinstance(reply, EntryRange):
        return plain(reply.entries())
    if isinstance(reply, (list, tuple)):
        return [plain(item) for item in reply]
    return reply
