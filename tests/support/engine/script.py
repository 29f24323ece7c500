"""Runs golden scripts: text files of commands and the output they must print, one scenario each.

    # A comment says what the scenario shows.
    node-entries-max 2            a setting of the engine; `time 5000` sets the clock in ms
    > XADD s 1-0 k a              a command; words in double quotes may contain blanks
    > XTRIM s MAXLEN ~ 1
    dump s                        the nodes of a stream, including tombstones
    inspect bytes s               the output of `penstock inspect`: tree, nodes, memory or bytes
    listen                        from here on, print every event after its command, as `* xadd s`
    ---
    "1-0"                         the output of all these lines, in the format of redis-cli
    ...

The level is 7.0, unless the first line after the comment is another, such as `level 8.6`.

A script is a sequence of such blocks, separated by empty lines. A command without an immediate reply prints
`(waits as 1)`; its reply is printed after `1 <-` when it arrives. UPDATE=1 rewrites the expected output, to
be read as a diff before it is committed; it has no effect in CI.

A script about crashes runs on a server with an append-only file on a disk in memory
(tests/support/servers/power_cycle.py). Its first line after the comment starts the log:

    log always                    or `log everysec`; must come before the first command
    stall                         the disk stops answering fsync: with `always`, replies now wait
    sync                          the disk syncs everything; replies that waited are printed
    crash                         power cut: only synced data survive, then the server starts again
    restart                       the server stops in good order and starts again

After `log always` each command is followed by a sync, until `stall`. After `log everysec` only `sync`
syncs. A client that still waits when the server goes down prints `1 <- (connection lost)`. Events
(`listen`) are not available in these scripts.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from penstock.cli.inspect import views
from penstock.cli.terminal.output import Stdout
from penstock.core import stream_id
from penstock.core.check import check_stream
from penstock.core.frame import Frame
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_cursor import EntryRange
from penstock.core.stream_node import NodeCursor, entry_count, live_count
from penstock.engine.clock import ManualClock
from penstock.engine.execute import Engine
from penstock.engine.keyspace import Keyspace
from penstock.engine.table import Command
from penstock.engine.waiters import Blocked, Waiter
from penstock.errors import CommandError
from penstock.inspect.files import FoundStream, raw_stream
from penstock.persist.aof.commit import Policy
from penstock.reply import NullArray, Pairs, Served, Status
from tests.support.engine.engines import LOOKUP
from tests.support.engine.keyspace_events import EventRecorder
from tests.support.servers.power_cycle import Answer, PowerCycledServer
from tests.support.servers.raw_redis import Refusal

VERSION = "7.0"


class NamedWaiter(Waiter):
    """A blocked command of a script. Its reply goes to `lines`."""

    def __init__(self, name: int, command: Command, blocked: Blocked, keyspace: Keyspace) -> None:
        super().__init__(command, blocked, keyspace)
        self._name = name
        self.lines: list[str] = []

    def wake(self) -> None:
        shown = f"(error) {self.error}" if self.error is not None else show(self.reply)
        self.lines.append(f"{self._name} <-\n{shown}")


class ScriptRun:
    """One engine, or a server with a log, and the output of its commands."""

    def __init__(self) -> None:
        self.clock = ManualClock(1000)
        self._version = VERSION
        self.engine = Engine(self.clock, VERSION)
        self._waiters = 0
        self._events: EventRecorder | None = None
        self._woken: list[str] = []
        self._durable: DurableRun | None = None

    def block(self, lines: list[str]) -> list[str]:
        """Run the lines of one block and return their output."""
        printed: list[str] = []
        for line in lines:
            if line.startswith("> "):
                printed += self.output_of(shlex.split(line[2:]))
            elif line.startswith("dump "):
                printed += dump(self.stream(line.removeprefix("dump ")))
            elif line.startswith("inspect "):
                what, key = line.split()[1:]
                printed += inspect(self.stream(key), what)
            elif line == "listen":
                self._events = EventRecorder(self.engine)
            elif line.startswith("level "):
                self._version = line.removeprefix("level ")
                self.engine = Engine(self.clock, self._version)
            elif line.startswith("log "):
                assert not self.engine.context.keyspace.values, "`log` comes before all commands"
                policy = Policy(line.removeprefix("log "))
                self._durable = DurableRun(self.clock, policy, self._version, self.engine.limits)
                self.engine = self._durable.server.engine
            elif line in ("stall", "sync", "crash", "restart"):
                assert self._durable is not None, f"`{line}` needs `log` before it"
                printed += self._durable.event(line)
                self.engine = self._durable.server.engine
            elif not line.startswith("#"):
                self.setting(*line.split())
        return printed

    def output_of(self, words: list[str]) -> list[str]:
        """Run one command. Return its reply, and the replies of the readers that it served."""
        if self._durable is not None:
            return self._durable.command(words)
        printed = [self.command(words), *self._woken]
        self._woken.clear()
        if self._events is not None:
            printed += [f"* {event}" for event in self._events.take()]
        return printed

    def command(self, words: list[str]) -> str:
        """Run one command on the engine, and return its reply."""
        frame = Frame()
        for word in words:
            frame.add_text(word)
        try:
            command = LOOKUP.find(frame)
            reply = self.engine.execute(command, frame)
        except CommandError as error:
            return f"(error) {error.wire_text}"
        if isinstance(reply, Blocked):
            self._waiters += 1
            waiter = NamedWaiter(self._waiters, command, reply, self.engine.context.keyspace)
            waiter.lines = self._woken
            self.engine.park(waiter)
            return f"(waits as {self._waiters})"
        return show(reply)

    def setting(self, name: str, value: str) -> None:
        """Set the clock or a limit."""
        settings: dict[str, Callable[[int], None]] = {
            "time": lambda number: setattr(self.clock, "at_ms", number),
            "node-entries-max": lambda n: setattr(self.engine.limits, "entries_max", n),
            "node-bytes-max": lambda n: setattr(self.engine.limits, "bytes_max", n),
        }
        settings[name](int(value))

    def stream(self, key: str) -> Stream:
        """A stream by name, after checking its invariants."""
        stream = self.engine.context.keyspace.stream_or_none(key.encode())
        assert stream is not None, f"there is no stream {key}"
        check_stream(stream)
        return stream


class DurableRun:
    """A server that may crash, and the names of the clients that wait for a reply."""

    def __init__(
        self, clock: ManualClock, policy: Policy, version: str, limits: NodeLimits
    ) -> None:
        self.server = PowerCycledServer(clock, policy, version, limits)
        self._names: dict[int, int] = {}  # of waiting commands, by their number
        self._named = 0

    def command(self, words: list[str]) -> list[str]:
        """Run one command from a client of its own."""
        answers = self.server.send(words)
        number = self.server.last_number
        own = [show(answer.reply) for answer in answers if answer.number == number]
        if not own:
            self._named += 1
            self._names[number] = self._named
            own = [f"(waits as {self._named})"]
        return own + self._late([answer for answer in answers if answer.number != number])

    def event(self, line: str) -> list[str]:
        """Run one of the lines stall, sync, crash and restart."""
        if line == "stall":
            self.server.stall()
            return []
        if line == "sync":
            return self._late(self.server.sync())
        answers, lost = self.server.crash() if line == "crash" else self.server.restart()
        return self._late(answers) + [
            f"{self._names.pop(number)} <- (connection lost)" for number in lost
        ]

    def _late(self, answers: list[Answer]) -> list[str]:
        return [f"{self._names.pop(answer.number)} <-\n{show(answer.reply)}" for answer in answers]


def dump(stream: Stream) -> list[str]:
    """The nodes of a stream and all entries in them, deleted ones too."""
    lines = []
    nodes = stream.nodes.iterator()
    nodes.seek("^")
    entry = NodeCursor()
    while nodes.next():
        master = stream_id.from_key(nodes.key)
        node: bytearray = nodes.value
        live = live_count(node)
        lines.append(f"node {master}  live={live} deleted={entry_count(node) - live}")
        entry.open(node, master.ms, master.seq)
        found = entry.first()
        while found:
            flags = ("SAME" if entry.same_fields else "-") + (" DELETED" if entry.deleted else "")
            pairs = [f"{name.decode()}={value.decode()}" for name, value in entry.mapping().items()]
            lines.append(f"  {entry.ms}-{entry.seq}  {flags}  {' '.join(pairs)}")
            found = entry.next()
    return lines


def inspect(stream: Stream, what: str) -> list[str]:
    """The output of `penstock inspect` for a stream, without empty lines: those separate blocks."""
    raw = raw_stream("", FoundStream(0, b"", stream), 0)
    raw.node_bytes_max, raw.node_entries_max = stream.limits.bytes_max, stream.limits.entries_max
    printed = io.StringIO()
    with redirect_stdout(printed):
        views.show(views.inspected(raw, None, lambda *_: None), [what], Stdout())
    _summary, *lines = printed.getvalue().splitlines()
    return [line for line in lines if line]


def show(reply: Any, indent: str = "") -> str:
    """A reply as redis-cli prints it."""
    if reply is None or isinstance(reply, NullArray):
        return "(nil)"
    if isinstance(reply, Status):
        return reply.text
    if isinstance(reply, Refusal):
        return f"(error) {reply.line}"
    if isinstance(reply, str):
        return reply
    if isinstance(reply, int):
        return f"(integer) {reply}"
    if isinstance(reply, bytes):
        return '"' + "".join(map(_escaped, reply)) + '"'
    items = _items(reply)
    if not items:
        return "(empty array)"
    width = len(str(len(items)))
    lines = []
    for number, item in enumerate(items, 1):
        head = f"{number:>{width}}) "
        shown = show(item, indent + " " * len(head))
        lines.append((indent if number > 1 else "") + head + shown)
    return "\n".join(lines)


def _escaped(char: int) -> str:
    """One byte of a string, as redis-cli prints it."""
    if chr(char) in '\\"':
        return f"\\{chr(char)}"
    if 32 <= char < 127:
        return chr(char)
    return {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 13: "\\r"}.get(char, f"\\x{char:02x}")


def _items(reply: Any) -> list[Any]:
    """The items of a reply that contains others, in order."""
    if isinstance(reply, Pairs):
        return [part for pair in reply.items for part in pair]
    if isinstance(reply, Served):
        return [list(pair) for pair in reply.items]
    if isinstance(reply, EntryRange):
        return reply.entries()
    return list(reply)


def run_script(path: Path, update: bool = False) -> tuple[str, str]:
    """Run a script. Returns its text, and the text with the output that it actually printed."""
    expected = path.read_text()
    run = ScriptRun()
    blocks = []
    for block in expected.strip().split("\n\n"):
        commands = block.split("\n---")[0].split("\n")
        printed = run.block(commands)
        blocks.append("\n".join([*commands, "---", *printed] if printed else commands))
    actual = "\n\n".join(blocks) + "\n"
    if update and actual != expected:
        path.write_text(actual)
    return expected, actual
