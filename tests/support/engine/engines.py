"""Short ways to run commands on an engine, and to see what it says as a RESP2 client would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.check import check_stream
from penstock.core.stream import EntryRange, Stream
from penstock.engine.clock import ManualClock
from penstock.engine.events import parse_kinds_or_none
from penstock.engine.execute import TABLE, Engine
from penstock.engine.keyspace import Keyspace, Watch
from penstock.engine.lookup import Lookup
from penstock.engine.table import Command
from penstock.engine.waiters import Blocked, Waiter
from penstock.errors import CommandError
from penstock.reply import Pairs, Served, Status
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import Refusal

LOOKUP = Lookup(TABLE.values())
START_MS = 1_700_000_000_000
STRING_KEY = b"string"  # a key that holds no stream

INVALID_ID = "ERR Invalid stream ID specified as stream command argument"
NOT_A_NUMBER = "ERR value is not an integer or out of range"
SYNTAX = "ERR syntax error"
NO_SUCH_KEY = "ERR no such key"
EVENT_KINDS = "EAn"  # all but misses, told by event
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


class Bench:
    """An engine with a clock of its own, and one key that holds something else than a stream."""

    def __init__(self, compat_version: str | None = None, start_ms: int = START_MS) -> None:
        self.clock = ManualClock(start_ms)
        self.engine = Engine(self.clock, compat_version)
        self.engine.context.keyspace.values[STRING_KEY] = b"no stream"

    def run(self, *words: bytes | str | int) -> Any:
        """The reply to a command, or its refusal, as a client would see it."""
        try:
            command, pieces = command_of(words)
            return plain(self.engine.execute(command, frame_of(*pieces)))
        except CommandError as error:
            return Refusal(error.wire_text)

    def ask(self, line: str) -> Any:
        """As run, for words without blanks in them."""
        return self.run(*line.split())

    def park(self, line: str) -> Reader:
        """Run a command that has to block, and let it wait."""
        command, pieces = command_of(line.split())
        blocked = self.engine.execute(command, frame_of(*pieces))
        assert isinstance(blocked, Blocked), f"{line} did not block: {blocked}"
        reader = Reader(command, blocked, self.engine.context.keyspace)
        self.engine.park(reader)
        return reader

    def replace(self, key: str, value: object | None) -> None:
        """Put something else under a key, or nothing, as a command about keys would."""
        keyspace = self.engine.context.keyspace
        keyspace.remove(key.encode())
        if value is not None:
            keyspace.put(key.encode(), value)
        self.engine.context.touch(key.encode())
        self.engine.serve_waiters()

    def listen(self) -> EventList:
        """Have every event noted from now on."""
        return listen(self.engine)

    def watch(self, key: str = "s") -> Watch:
        """Watch a key, as a client does before its transaction."""
        watch = Watch()
        self.engine.context.keyspace.watch(key.encode(), watch)
        self.engine.context.watching += 1
        return watch

    def stream(self, key: str = "s") -> Stream:
        stream = self.engine.context.keyspace.stream_or_none(key.encode())
        assert stream is not None
        return stream

    def state(self) -> list[Any]:
        """Everything that commands can tell about every stream, after checking all of it."""
        found: list[Any] = []
        for key, value in sorted(self.engine.context.keyspace.values.items()):
            if isinstance(value, Stream):
                check_stream(value)
                found += [key, self.run("XINFO", "STREAM", key, "FULL", "COUNT", 0)]
        return found


def grouped(*entry_ids: str, version: str | None = None) -> Bench:
    """A stream s of entries k=v under these ids, and a group g that has read none of them."""
    bench = Bench(version)
    for entry_id in entry_ids:
        bench.run("XADD", "s", entry_id, "k", "v")
    bench.ask("XGROUP CREATE s g 0 MKSTREAM")
    return bench


class EventList:
    """Hears all events and notes each as `event key`."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def message(self, channel: bytes, text: bytes) -> None:
        raise AssertionError(f"nobody asked for {channel!r} by name")

    def pattern_message(self, pattern: bytes, channel: bytes, text: bytes) -> None:
        self._lines.append(event_line(channel, text))

    def take(self) -> list[str]:
        """What was told since the last time."""
        lines, self._lines = self._lines, []
        return lines


def listen(engine: Engine) -> EventList:
    """Have every event of an engine noted from now on."""
    told = EventList()
    channels = engine.context.channels
    channels.add(channels.by_pattern, b"__keyevent@*", told)
    engine.context.event_kinds = parse_kinds_or_none(EVENT_KINDS) or 0
    return told


def event_line(channel: bytes, key: bytes) -> str:
    """`__keyevent@0__:xadd` about the key s, as `xadd s`."""
    event = channel.partition(b":")[2].decode()
    return f"{event} {key.decode('utf-8', 'backslashreplace')}"


def assert_refused(bench: Bench, line: str, text: str) -> None:
    """The words are refused with this text, and nothing has changed."""
    before = bench.state()
    assert bench.ask(line) == Refusal(text)
    assert bench.state() == before


class Reader(Waiter):
    """A blocked read that notes what it was woken with."""

    def __init__(self, command: Command, blocked: Blocked, keyspace: Keyspace) -> None:
        super().__init__(command, blocked, keyspace)
        self.timeout_ms = blocked.timeout_ms
        self.woken = 0
        self.got: Any = None

    def wake(self) -> None:
        self.woken += 1
        if isinstance(self.error, CommandError):
            self.got = Refusal(self.error.wire_text)
        else:
            self.got = plain(self.reply)


def command_of(words: Sequence[bytes | str | int]) -> tuple[Command, list[bytes]]:
    """The row of the table that these words ask for, and the words in bytes."""
    pieces = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return LOOKUP.find(frame_of(*pieces)), pieces


def plain(reply: Any) -> Any:
    """A reply in the shape that RESP2 gives it: maps are flat, everything else is a list."""
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
