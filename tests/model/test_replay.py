"""An engine that replays only the effects of another holds the same data at every moment, in random runs.

At the end all effects are read as the log file that they would form.

A failure names its seed; PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import io

import pytest

from penstock.engine.execute import TABLE
from penstock.persist.aof.replay import Replay as FileReplay
from tests.support.campaign import cases, seed
from tests.support.engine.effects import Recorder, Replay, texts_of
from tests.support.engine.engine_state import engine_state, forget_expired_names
from tests.support.random.effects import Work

FULL_COMMANDS = 200_000
ROUND_COMMANDS = 400
COMPARED = 0.05  # the share of commands after which the engines are compared
VERSIONS = ("7.0", "7.4", "8.6", "8.10")


@pytest.mark.parametrize("version", VERSIONS)
def test_effects_done_again_make_the_same_data(version: str) -> None:
    start = seed()
    for n in range(max(1, cases(FULL_COMMANDS // len(VERSIONS)) // ROUND_COMMANDS)):
        play(f"{start}/{n}", version)


def play(name: str, version: str) -> None:
    recorder, replay = Recorder(version), Replay(version)
    work = Work(recorder, name, level=version)
    for limits, other in (
        (replay.engine.limits, recorder.engine.limits),
        (replay.engine.list_limits, recorder.engine.list_limits),
    ):
        limits.bytes_max, limits.entries_max = other.bytes_max, other.entries_max
    for n in range(ROUND_COMMANDS):
        work.step()
        if n == ROUND_COMMANDS - 1 or work.dice.random() < COMPARED:
            compare(work, recorder, replay, name)
    loaded = recorder.engine.spare()
    FileReplay(loaded, TABLE.values()).run(io.BytesIO(recorder.data), name)
    forget_expired_names(loaded, recorder.clock.at_ms)
    assert engine_state(loaded) == engine_state(recorder.engine), f"seed {name}, as a file"


def compare(work: Work, recorder: Recorder, replay: Replay, name: str) -> None:
    """Replay the new effects on the second engine and compare the data."""
    data = recorder.take()
    try:
        replay.feed(data)
        for engine in (replay.engine, recorder.engine):
            forget_expired_names(engine, recorder.clock.at_ms)
        assert replay.state() == engine_state(recorder.engine)
    except Exception as error:
        effects = "\n".join(texts_of(data))
        story = work.story(f"the effects since the last comparison:\n{effects}")
        raise AssertionError(f"seed {name}\n{story}\n{error}") from error
