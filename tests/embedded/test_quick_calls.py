"""A call that uses the quick form of its command returns what the full form returns, and changes the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

import penstock
from penstock.engine.clock import ManualClock
from penstock.errors import CommandError, DataError
from tests.support.campaign import cases, seed
from tests.support.engine.engine_state import engine_state

ROUNDS = cases(40)
CALLS = 200


class Both:
    """Two databases: one is called, in the other each call is a pipeline, which uses the full forms."""

    def __init__(self, level: str) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.quick = penstock.open(clock=self.clock, compat_version=level)
        self.full = penstock.open(clock=self.clock, compat_version=level)

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        """Call a method on both; the results and the data must be equal."""
        quick = outcome(lambda: getattr(self.quick, name)(*args, **options))
        full = outcome(lambda: self._in_pipeline(name, *args, **options))
        assert quick == full, (name, args, options)
        return quick

    def _in_pipeline(self, name: str, *args: Any, **options: Any) -> Any:
        pipe = self.full.pipeline(transaction=False)
        getattr(pipe, name)(*args, **options)
        return pipe.execute()[0]

    def check(self) -> None:
        """The data of both is equal."""
        assert engine_state(self.quick._engine) == engine_state(self.full._engine)
        quick, full = self.seen()
        assert quick == full

    def seen(self) -> list[list[Any]]:
        """What both know about the consumers, with their times."""
        return [
            outcome(lambda db=db: db.xinfo_consumers("s", "g")) for db in (self.quick, self.full)
        ]


def outcome(call: Any) -> Any:
    """The result, or the error as text. A pipeline adds its own words to the text of an error."""
    try:
        return call()
    except (CommandError, DataError) as error:
        return type(error)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_calls_and_pipelines_do_the_same(number: int) -> None:
    dice = random.Random(f"{seed()}/{number}")
    both = Both(dice.choice(["7.0", "8.6", "8.10"]))
    both.call("xgroup_create", "s", "g", "0", mkstream=True)
    known = [b"1-1"]
    for _ in range(CALLS):
        kind = dice.choice(["add", "add", "read", "read", "read", "ack", "ack", "change"])
        if kind == "add":
            fields = dice.choice(
                [{"f": "v"}, {b"f": 17}, {"f": 1.5, "g": b"x" * 90}, {}, {"f": None}]
            )
            options: Any = dice.choice(
                [{}, {}, {"maxlen": 30}, {"id": "5-1"}, {"nomkstream": True}]
            )
            added = both.call("xadd", dice.choice("sst"), fields, **options)
            if isinstance(added, bytes):
                known.append(added)
        elif kind == "read":
            options = {
                "count": dice.choice([None, 1, 1, 10, 0, "1"]),
                "noack": dice.choice([False, False, True]),
            }
            streams = dice.choice(
                [{"s": ">"}, {"s": ">"}, {b"s": ">"}, {"s": "0"}, {"s": ">", "t": ">"}, {}]
            )
            group = dice.choice(["g", "g", "g", "none"])
            both.call("xreadgroup", group, dice.choice(["c", b"d", 5]), streams, **options)
        elif kind == "ack":
            ids = [dice.choice(known[-12:]) for _ in range(dice.choice([1, 1, 5]))]
            both.call("xack", dice.choice("ssst"), dice.choice(["g", "g", "none"]), *ids)
        else:
            change = dice.choice(["xgroup_delconsumer", "xdel", "xtrim"])
            if change == "xgroup_delconsumer":
                both.call(change, "s", "g", "c")
            elif change == "xdel":
                both.call(change, "s", dice.choice(known[-12:]))
            else:
                both.call(change, "s", maxlen=20, approximate=False)
        both.clock.at_ms += dice.choice([0, 0, 1, 1000])
        both.check()


def test_a_blocked_call_is_served_by_the_full_form() -> None:
    with penstock.open() as db:
        db.xgroup_create("s", "g", mkstream=True)
        assert db.xreadgroup("g", "c", {"s": ">"}, block=1) == []
        entry_id = db.xadd("s", {"f": "v"})
        assert db.xreadgroup("g", "c", {"s": ">"}, block=0) == [[b"s", [(entry_id, {b"f": b"v"})]]]  # type: ignore[comparison-overlap]


def test_results_are_decoded_if_asked_for() -> None:
    with penstock.open(decode_responses=True) as db:
        db.xgroup_create("s", "g", mkstream=True)
        entry_id = db.xadd("s", {"f": "ü"})
        assert db.xreadgroup("g", "c", {"s": ">"}) == [["s", [(entry_id, {"f": "ü"})]]]  # type: ignore[comparison-overlap]
        assert db.xack("s", "g", entry_id) == 1
        assert db.xreadgroup("g", "c", {"s": ">"}) == []
