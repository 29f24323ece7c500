"""Records the effects of an engine, and replays them on a second one. Both must end with the same data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.core.frame import Frame
from penstock.engine.clock import ManualClock
from penstock.engine.execute import Engine
from penstock.persist.aof.journal import Journal
from penstock.wire.parser import Parser, WireLimits
from tests.support.engine.engine_state import engine_state
from tests.support.engine.engines import LOOKUP, START_MS, Bench, plain
from tests.support.engine.streams import frame_of

REPLAY_MS = 0  # no key has expired yet


class Recorder(Bench):
    """A bench with a journal. `take` returns the bytes since the last call; `data` has all of them."""

    def __init__(self, compat_version: str | None = None, start_ms: int = START_MS) -> None:
        super().__init__(compat_version, start_ms)
        self.engine.context.keyspace.values.clear()
        self.journal = Journal()
        self.engine.context.effects = self.journal
        self.data = b""

    def select(self, database: int) -> None:
        """Continue in another database, as SELECT does."""
        self.engine.context.keyspace = self.engine.context.databases[database]

    def take(self) -> bytes:
        """The bytes of all effects since the last call."""
        taken = self.journal.take()
        self.data += taken
        return taken


class Replay:
    """An engine that replays effects, at a time when no key has expired."""

    def __init__(self, compat_version: str | None = None, ours: bool = True) -> None:
        self._ours = ours  # effects recorded by us: each must change something
        self.clock = ManualClock(REPLAY_MS)
        self.engine = Engine(self.clock, compat_version)
        self.engine.context.replaying = True
        self._queue: list[Frame] | None = None

    def feed(self, data: bytes) -> None:
        """Replay complete units of effects. None of them may be refused."""
        for frame in frames_of(data):
            if frame.is_word(0, b"MULTI"):
                assert self._queue is None, "MULTI inside MULTI"
                self._queue = []
            elif frame.is_word(0, b"EXEC"):
                assert self._queue is not None, "EXEC without MULTI"
                queue, self._queue = self._queue, None
                for queued in queue:
                    self._run(queued)
            elif self._queue is not None:
                self._queue.append(frame.copy())
            else:
                self._run(frame)
        assert self._queue is None, "MULTI without EXEC"

    def _run(self, frame: Frame) -> Any:
        context = self.engine.context
        if frame.is_word(0, b"SELECT"):
            context.keyspace = context.databases[int(frame.piece(1))]
            return None
        before = context.dirty
        reply = self.engine.execute(LOOKUP.find(frame), frame)
        assert context.dirty > before or not self._ours, f"{text_of(frame)} changed nothing"
        return reply

    def ask(self, words: list[bytes]) -> Any:
        """The reply to a read command, as a client sees it."""
        frame = frame_of(*words)
        return plain(self.engine.execute(LOOKUP.find(frame), frame))

    def state(self) -> list[str]:
        return engine_state(self.engine)


def frames_of(data: bytes) -> Iterator[Frame]:
    """The commands in the bytes of a journal. Each frame is valid until the next one."""
    buffer = bytearray(data)
    parser = Parser(WireLimits())
    frame = Frame()
    while parser.start < len(buffer):
        frame.over(buffer)
        assert parser.next(frame, buffer, len(buffer)), "the last command is cut off"
        yield frame


def texts_of(data: bytes) -> list[str]:
    """Each command in the bytes of a journal, as one line of text."""
    return [text_of(frame) for frame in frames_of(data)]


def text_of(frame: Frame) -> str:
    """A command as text, separated by blanks."""
    return b" ".join(frame.piece(at) for at in range(frame.count)).decode(
        "utf-8", "backslashreplace"
    )
