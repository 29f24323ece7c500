"""The commands of workers: what they refuse, and that a refused one changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.commands.work.rows import LOOK_MS, SEEN_MAX, WINDOW_MS
from penstock.engine.commands.work.send import DELAY_WINDOW_MS
from tests.support.engine.effects import Recorder
from tests.support.engine.engine_state import engine_state
from tests.support.engine.engines import SYNTAX, WRONG_TYPE
from tests.support.servers.raw_redis import Refusal

TAKE = "PENSTOCK TAKE 3 s s:dead s:delayed g c"
NO_GROUP = "NOGROUP No such key 's' or consumer group 'h'"
NOT_INT = "ERR value is not an integer or out of range"


@pytest.fixture
def bench() -> Recorder:
    """A stream with one entry, which the consumer c holds."""
    bench = Recorder(None, 2 * WINDOW_MS)
    bench.ask("XADD s 1 k a")
    bench.ask("XGROUP CREATE s g 0")
    bench.ask(f"{TAKE} 30000 3 10 ANY")
    bench.ask("SET text v")
    return bench


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (f"{TAKE} 30000 3 10 SOME", "ERR mode must be ANY, ALONE or NEW"),
        (f"{TAKE} 30000 3 10 ANY more", SYNTAX),
        (f"{TAKE} 0 3 10 ANY", f"ERR 0 is not between 1 and {WINDOW_MS}"),
        (f"{TAKE} 30000 0 10 ANY", f"ERR 0 is not between 1 and {2**63 - 1}"),
        (f"{TAKE} 30000 3 1001 ANY", "ERR 1001 is not between 1 and 1000"),
        (f"{TAKE} soon 3 10 ANY", NOT_INT),
        ("PENSTOCK TAKE 99 s s:dead s:delayed g c 1 1 1 ANY", SYNTAX),
        ("PENSTOCK TAKE 0 s s:dead s:delayed g c 1 1 1 ANY", "ERR numkeys must be a number from 1"),
        ("PENSTOCK TAKE 2 s s:dead g c 1 1 1 ANY x", "ERR wrong number of keys"),
        ("PENSTOCK TAKE 3 s text s:delayed g c 1 1 1 ANY", WRONG_TYPE),
        ("PENSTOCK TAKE 3 s s:dead text g c 1 1 1 ANY", WRONG_TYPE),
        ("PENSTOCK TAKE 3 text s:dead s:delayed g c 1 1 1 ANY", WRONG_TYPE),
        ("PENSTOCK TAKE 3 s s:dead s:delayed h c 1 1 1 ANY", NO_GROUP),
        (
            "PENSTOCK TAKE 4 s s:dead s:delayed text g c 1 1 1 NEW",
            "NOTOWNER another consumer owns this stream, or none",
        ),
        (
            "PENSTOCK ADOPT 3 s s:dead o g c 1 1 0-0 10",
            "NOTOWNER another consumer owns this stream, or none",
        ),
        ("PENSTOCK RENEW 1 s g c 1 1-0 1", SYNTAX),
        ("PENSTOCK RENEW 1 s h c 1 1-0 1 1", NO_GROUP),
        ("PENSTOCK SETTLE 2 s s:dead g c SKIP 1-0 1", None),
        ("PENSTOCK SETTLE 2 s s:dead g c ACK 1-0 1 ACK oops 1", None),
        ("PENSTOCK SETTLE 2 s s:dead g c ACK 1-0 1 SEND 3 0 0 0 1 2 k v", None),
        ("PENSTOCK SETTLE 3 s s:dead text g c ACK 1-0 1 SEND 3 0 0 0 1 2 k v", WRONG_TYPE),
        ("PENSTOCK SETTLE 2 s text g c ACK 1-0 1", WRONG_TYPE),
        ("PENSTOCK SETTLE 2 s s:dead g c ACK 1-0 1 SEND 1 0 0 0 1 3 k v w", None),
        ("PENSTOCK SEND 1 t 1 0 0 5 1 2 k v", None),
        ("PENSTOCK SEND 1 text 1 0 0 0 1 2 k v", WRONG_TYPE),
        ("PENSTOCK OWN 1 s c 100", WRONG_TYPE),
        ("PENSTOCK OWN 1 o c -1", None),
        ("PENSTOCK OWN 1 o c 100 KEEP KEEP", SYNTAX),
        ("PENSTOCK OWN 1 o c 100 SOON", SYNTAX),
        ("PENSTOCK OWN 1 o c 100 TO", SYNTAX),
        ("PENSTOCK REAP 1 s h 0", NO_GROUP),
    ],
)
def test_a_bad_call_is_refused_and_changes_nothing(
    bench: Recorder, line: str, text: str | None
) -> None:
    before = engine_state(bench.engine)
    bench.take()
    reply: Any = bench.ask(line)
    assert isinstance(reply, Refusal)
    assert text is None or reply == Refusal(text)
    assert engine_state(bench.engine) == before
    assert bench.take() == b""


def test_a_row_whose_entry_was_deleted_goes(bench: Recorder) -> None:
    bench.ask("XDEL s 1")
    assert bench.ask("PENSTOCK RENEW 1 s g c 100 1-0 1 1") == [b"1-0"]
    assert bench.ask("XPENDING s g")[0] == 0


SENT = "XADD s * k a"
OTHERS = "PENSTOCK TAKE 3 s s:dead s:delayed g d 30000 3 10 ANY"


@pytest.mark.parametrize(
    ("lines", "wait_ms"),
    [
        ([], -1),
        (["PENSTOCK SEND 2 s s:delayed 1 2 0 5000 1 2 k a"], 5000),
        ([SENT], 30_000),  # it is taken now, and the lease ends then
        ([SENT, OTHERS], LOOK_MS),  # the other worker may give it back at any time
        ([SENT, OTHERS, "PENSTOCK SETTLE 2 s s:dead g d RETRY {id} 1 7000 1"], 7000),
        ([SENT, OTHERS, "PENSTOCK SETTLE 2 s s:dead g d RETRY {id} 1 100 1"], 100),
        ([SENT, OTHERS, "PENSTOCK SETTLE 2 s s:dead g d ACK {id} 1"], -1),
        ([SENT] * 10, 0),  # there may be more
        ([SENT, *["PENSTOCK SEND 2 s s:delayed 1 2 0 60000 1 2 k a"] * SEEN_MAX], LOOK_MS),
    ],
)
def test_take_tells_when_there_may_be_more(lines: list[str], wait_ms: int) -> None:
    bench = Recorder(None, 2 * DELAY_WINDOW_MS)
    bench.ask("XGROUP CREATE s g 0 MKSTREAM")
    found: Any = None
    for line in lines:
        reply: Any = bench.ask(line.format(id=found))
        found = reply.decode() if isinstance(reply, bytes) else found
    taken: Any = bench.ask(f"{TAKE} 30000 3 10 ANY")
    assert taken[2] == wait_ms
    ends = [bench.ask(f"XREVRANGE {key} + - COUNT 1") for key in ("s", "s:delayed")]
    assert taken[4] == [end[0][0] if end else b"0-0" for end in ends]
