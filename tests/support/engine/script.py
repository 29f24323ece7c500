"""Runs golden scripts: text files of commands and of what they answer, one scenario each.

    # A comment says what the scenario shows.
    node-entries-max 2            a setting of the engine; `time 5000` sets the clock in ms
    > XADD s 1-0 k a              a command; words in double quotes may hold blanks
    > XTRIM s MAXLEN ~ 1
    dump s                        the nodes of a stream, tombstones included
    inspect bytes s               what `penstock inspect` prints of it: tree, nodes, memory or bytes
    listen                        from here on, every event is printed behind its command, as `* xadd s`
    ---
    "1-0"                         what all of this prints, as redis-cli would
    ...

A script is a sequence of such blocks, with empty lines between them. A command that has to wait prints
`(waits as 1)`; what it gets later is printed behind `1 <-` where it was served. UPDATE=1
rewrites the expected parts, to be read as a diff before it is committed; never in CI.
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
from penstock.core.stream import EntryRange, Stream
from penstock.core.stream_node import NodeCursor, entry_count, live_count
from penstock.engine.clock import ManualClock
from penstock.engine.execute import Engine
from penstock.engine.keyspace import Keyspace
from penstock.engine.table import Command
from penstock.engine.waiters import Blocked, Waiter
from penstock.errors import CommandError
from penstock.inspect.files import FoundStream, raw_stream
from penstock.reply import NullArray, Pairs, Served, Status
from tests.support.engine.engines import LOOKUP, EventList, listen


class NamedWaiter(Waiter):
    """A blocked command of a script, which notes what it was given."""

    def __init__(self, name: int, command: Command, blocked: Blocked, keyspace: Keyspace) -> None:
        super().__init__(command, blocked, keyspace)
        self._name = name
        self.lines: list[str] = []

    def wake(self) -> None:
        shown = f"(error) {self.error}" if self.error is not None else show(self.reply)
        self.lines.append(f"{self._name} <-\n{shown}")


class ScriptRun:
    """One engine and what its commands have printed."""

    def __init__(self) -> None:
        self.clock = ManualClock(1000)
        self.engine = Engine(self.clock, "7.0")
        self._waiters = 0
        self._told: EventList | None = None
        self._woken: list[str] = []

    def block(self, lines: list[str]) -> list[str]:
        """Run the lines of one block and return what they print."""
        printed: list[str] = []
        for line in lines:
            if line.startswith("> "):
                printed.append(self.command(shlex.split(line[2:])))
                printed += self._woken
                self._woken.clear()
                if self._told is not None:
                    printed += [f"* {event}" for event in self._told.take()]
            elif line.startswith("dump "):
                printed += dump(self.stream(line.removeprefix("dump ")))
            elif line.startswith("inspect "):
                what, key = line.split()[1:]
                printed += inspect(self.stream(key), what)
            elif line == "listen":
                self._told = listen(self.engine)
            elif not line.startswith("#"):
                self.setting(*line.split())
        return printed

    def command(self, words: list[str]) -> str:
        """Run one command and show its answer."""
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
        """A stream by name, sound in every respect."""
        stream = self.engine.context.keyspace.stream_or_none(key.encode())
        assert stream is not None, f"there is no stream {key}"
        check_stream(stream)
        return stream


def dump(stream: Stream) -> list[str]:
    """The nodes of a stream and their entries, as they lie."""
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
    """One view of a stream, by the printer of `penstock inspect`; a block has no empty lines."""
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
    """What a reply that holds others holds, in order."""
    if isinstance(reply, Pairs):
        return [part for pair in reply.items for part in pair]
    if isinstance(reply, Served):
        return [list(pair) for pair in reply.items]
    if isinstance(reply, EntryRange):
        return reply.entries()
    return list(reply)


def run_script(path: Path, update: bool = False) -> tuple[str, str]:
    """The script's text, and the text that it would have if what it prints were expected."""
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
