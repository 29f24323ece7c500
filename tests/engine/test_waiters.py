"""Blocked readers: who is served when, with what, and that none is forgotten."""

from __future__ import annotations

import pytest

from tests.support.engine.engines import Bench, Reader, command_of, grouped
from tests.support.engine.streams import frame_of

KV = [b"k", b"v"]


@pytest.fixture(params=["7.0", "7.4"])
def bench(request: pytest.FixtureRequest) -> Bench:
    """An empty stream s with a group g."""
    return grouped(version=request.param)


def entries(key: str, *entry_ids: str) -> list[object]:
    return [[key.encode(), [[entry_id.encode(), KV] for entry_id in entry_ids]]]


def readers(bench: Bench, *lines: str) -> list[Reader]:
    return [bench.park(line) for line in lines]


def waiting(bench: Bench) -> int:
    """The number of waiters; all others must have left every queue."""
    waiters = bench.engine.waiters
    assert waiters.count == bench.engine.context.waiting == len(waiters.all())
    return waiters.count


# --- XREAD ----------------------------------------------------------------------------------------


def test_every_xread_that_waits_is_served(bench: Bench) -> None:
    parked = readers(bench, *["XREAD BLOCK 0 STREAMS s $"] * 3)
    assert waiting(bench) == 3
    bench.ask("XADD s 1-0 k v")
    assert [reader.got for reader in parked] == [entries("s", "1-0")] * 3
    assert waiting(bench) == 0


def test_a_served_reader_is_woken_once(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s $")
    bench.ask("XADD s 1-0 k v")
    bench.ask("XADD s 2-0 k v")
    assert (reader.woken, reader.got, reader.done) == (1, entries("s", "1-0"), True)


def test_dollar_is_the_end_at_the_time_of_the_call(bench: Bench) -> None:
    bench.ask("XADD s 1-0 k v")
    bench.ask("XADD s 2-0 k v")
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s $")
    bench.ask("XDEL s 2-0")
    bench.ask("XADD s 3-0 k v")
    assert reader.got == entries("s", "3-0")


def test_dollar_of_a_stream_that_is_not_there_is_its_beginning(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS new $")
    bench.ask("XADD new 1-0 k v")
    assert reader.got == entries("new", "1-0")


def test_a_reader_behind_an_id_to_come_waits_until_it_is_passed(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s 5")
    bench.ask("XADD s 4-0 k v")
    bench.ask("XADD s 5-0 k v")
    assert (reader.woken, waiting(bench)) == (0, 1)
    bench.ask("XADD s 5-1 k v")
    assert reader.got == entries("s", "5-1")


def test_an_entry_that_is_trimmed_in_the_same_command_wakes_nobody(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s $")
    bench.ask("XADD s MAXLEN 0 1-0 k v")
    assert (reader.woken, waiting(bench)) == (0, 1)


def test_a_refused_command_wakes_nobody(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s $")
    bench.ask("XADD s 0-0 k v")
    bench.ask("XADD other 1-0 k v")
    assert (reader.woken, waiting(bench)) == (0, 1)


def test_a_count_limits_a_blocked_reader_too(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD COUNT 1 BLOCK 0 STREAMS s t $ $")
    bench.ask("XADD s 1-0 k v")
    assert reader.got == entries("s", "1-0")


# --- Several keys ---------------------------------------------------------------------------------


def test_a_waiter_for_several_keys_leaves_all_queues(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s t u $ $ $")
    bench.ask("XADD t 1-0 k v")
    assert reader.got == entries("t", "1-0")
    assert waiting(bench) == 0
    bench.ask("XADD s 1-0 k v")
    bench.ask("XADD u 1-0 k v")
    assert reader.woken == 1


def test_a_key_that_is_named_twice_is_answered_twice(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s s $ 0")
    bench.ask("XADD s 1-0 k v")
    assert reader.got == entries("s", "1-0") * 2
    assert waiting(bench) == 0


def test_leaving_removes_a_waiter_from_all_queues(bench: Bench) -> None:
    first, second = readers(bench, "XREAD BLOCK 5 STREAMS s t $ $", "XREAD BLOCK 5 STREAMS t s $ $")
    bench.engine.unpark(first)
    assert waiting(bench) == 1
    bench.ask("XADD t 1-0 k v")
    assert (first.woken, second.woken, waiting(bench)) == (0, 1, 0)


def test_leaving_after_being_served_changes_nothing(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 5 STREAMS s $")
    bench.ask("XADD s 1-0 k v")
    bench.engine.unpark(reader)
    bench.engine.unpark(reader)
    assert (reader.got, waiting(bench)) == (entries("s", "1-0"), 0)


@pytest.mark.parametrize("instead", [None, b"a string"])
def test_an_xread_keeps_waiting_when_its_stream_is_removed(
    bench: Bench, instead: bytes | None
) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s t $ $")
    bench.replace("s", instead)
    assert (reader.woken, waiting(bench)) == (0, 1)
    bench.ask("XADD t 1-0 k v")
    assert reader.got == entries("t", "1-0")


def test_an_xread_is_served_by_the_stream_that_comes_in_the_place_of_another(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s $")
    bench.replace("s", b"a string")
    bench.replace("s", None)
    bench.ask("XADD s 1-0 k v")
    assert reader.got == entries("s", "1-0")


# --- XREADGROUP -----------------------------------------------------------------------------------


def test_readers_of_a_group_are_served_in_order(bench: Bench) -> None:
    lines = [f"XREADGROUP GROUP g {name} BLOCK 0 STREAMS s >" for name in "cab"]
    parked = readers(bench, *lines)
    bench.ask("XADD s 1-0 k v")
    assert [reader.woken for reader in parked] == [1, 0, 0]
    bench.ask("XADD s 2-0 k v")
    bench.ask("XADD s 3-0 k v")
    assert [reader.got for reader in parked] == [entries("s", f"{n}-0") for n in (1, 2, 3)]
    owners = [(row[0], row[1]) for row in bench.ask("XPENDING s g - + 9")]
    assert owners == [(b"1-0", b"c"), (b"2-0", b"a"), (b"3-0", b"b")]


def test_each_group_gets_the_entry_and_so_does_every_xread(bench: Bench) -> None:
    bench.ask("XGROUP CREATE s h 0")
    parked = readers(
        bench,
        "XREADGROUP GROUP g a BLOCK 0 STREAMS s >",
        "XREAD BLOCK 0 STREAMS s $",
        "XREADGROUP GROUP h a BLOCK 0 STREAMS s >",
        "XREADGROUP GROUP g b BLOCK 0 STREAMS s >",
    )
    bench.ask("XADD s 1-0 k v")
    assert [reader.woken for reader in parked] == [1, 1, 1, 0]


def test_without_acknowledgement_a_blocked_reader_leaves_nothing_pending(bench: Bench) -> None:
    [reader] = readers(bench, "XREADGROUP GROUP g a BLOCK 0 NOACK STREAMS s >")
    bench.ask("XADD s 1-0 k v")
    assert reader.got == entries("s", "1-0")
    assert bench.ask("XPENDING s g")[0] == 0


def test_a_group_that_is_moved_back_serves_waiters_when_the_next_entry_comes(bench: Bench) -> None:
    """Found by the random campaign: they were served at once."""
    bench.ask("XADD s 1-0 k v")
    bench.ask("XGROUP SETID s g $")
    [reader] = readers(bench, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >")
    bench.ask("XGROUP SETID s g 0")
    assert reader.woken == 0
    bench.ask("XADD s 2-0 k v")
    assert reader.got == entries("s", "1-0", "2-0")


def test_only_the_readers_of_a_destroyed_group_are_woken(bench: Bench) -> None:
    bench.ask("XGROUP CREATE s h 0")
    gone, stays, other = readers(
        bench,
        "XREADGROUP GROUP g a BLOCK 0 STREAMS s >",
        "XREADGROUP GROUP h a BLOCK 0 STREAMS s >",
        "XREAD BLOCK 0 STREAMS s $",
    )
    bench.ask("XGROUP DESTROY s g")
    assert [reader.woken for reader in (gone, stays, other)] == [1, 0, 0]
    assert gone.got.line.startswith("NOGROUP ")
    assert waiting(bench) == 2


def test_the_time_of_a_delivery_is_when_the_entry_came_not_when_the_reader_asked(
    bench: Bench,
) -> None:
    readers(bench, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >")
    bench.clock.at_ms += 700
    bench.ask("XADD s 1-0 k v")
    bench.clock.at_ms += 30
    assert bench.ask("XPENDING s g - + 1") == [[b"1-0", b"a", 30, 1]]
    assert bench.ask("XINFO CONSUMERS s g")[0][5] == 30


def test_a_thousand_readers_are_served_in_order(bench: Bench) -> None:
    line = "XREADGROUP GROUP g c{} COUNT 1 BLOCK 0 STREAMS s >"
    parked = readers(bench, *(line.format(n) for n in range(1000)))
    for n in range(1, 1001):
        bench.run("XADD", "s", f"{n}-0", "k", "v")
    assert [reader.got for reader in parked] == [entries("s", f"{n}-0") for n in range(1, 1001)]
    assert waiting(bench) == 0


# --- Lines ----------------------------------------------------------------------------------------


def test_an_entry_runs_only_the_readers_that_it_can_serve(bench: Bench) -> None:
    """However many wait: one that is served, and the next one of its group."""
    line = "XREADGROUP GROUP g c{} BLOCK 0 STREAMS s >"
    parked = readers(bench, *(line.format(n) for n in range(500)))
    bench.ask("XADD s 1-0 k v")
    assert [reader.runs for reader in parked] == [1, 1] + [0] * 498
    bench.ask("XADD s 2-0 k v")
    assert [reader.runs for reader in parked] == [1, 2, 1] + [0] * 497


def test_readers_behind_an_id_to_come_are_tried_once(bench: Bench) -> None:
    parked = readers(bench, *["XREAD BLOCK 0 STREAMS s 5"] * 100)
    bench.ask("XADD s 4-0 k v")
    assert sum(reader.runs for reader in parked) == 1


def test_nothing_is_noted_for_a_key_that_nobody_waits_for(bench: Bench) -> None:
    [reader] = readers(bench, "XREAD BLOCK 0 STREAMS s $")
    for line in ("XADD t 1-0 k v", "XADD t 2-0 k v", "SET x 1", "RPUSH l 1", "DEL t"):
        command, pieces = command_of(line.split())
        bench.engine.run(command, frame_of(*pieces))
    assert bench.engine.context.touched == []
    assert (reader.runs, waiting(bench)) == (0, 1)


def test_lines_are_served_in_the_order_of_blocking(bench: Bench) -> None:
    """Two entries at once: a reader of g that blocked last does not overtake the reader of h."""
    bench.ask("XGROUP CREATE s h 0")
    line = "XREADGROUP GROUP {} {} COUNT 1 BLOCK 0 STREAMS s >"
    order: list[str] = []
    parked = readers(bench, *(line.format(*pair) for pair in ("ga", "hb", "gc", "hd", "ge")))
    for name, reader in zip("abcde", parked, strict=True):
        note_wake(reader, name, order)
    bench.engine.begin_unit()
    for line in ("XADD s 1-0 k v", "XADD s 2-0 k v"):
        command, pieces = command_of(line.split())
        bench.engine.run(command, frame_of(*pieces))
    bench.engine.end_unit()
    assert order == ["a", "b", "c", "d"]
    assert waiting(bench) == 1


def note_wake(reader: Reader, name: str, order: list[str]) -> None:
    wake = reader.wake

    def noted() -> None:
        order.append(name)
        wake()

    reader.wake = noted  # type: ignore[method-assign]


def test_a_line_and_its_key_go_with_their_last_waiter(bench: Bench) -> None:
    first, second = readers(bench, *["XREAD BLOCK 0 STREAMS s s $ 0"] * 2)
    awaited = bench.engine.context.keyspace.awaited
    bench.engine.unpark(first)
    assert [len(line) for line in awaited[b"s"].values()] == [1]
    bench.engine.unpark(second)
    assert awaited == {}


# --- Claiming -------------------------------------------------------------------------------------


def test_each_reader_that_claims_gets_a_new_time_when_its_time_has_come() -> None:
    """The second is not asked if the first found nothing, but its owner must know when to ask again."""
    bench = grouped("1-0", version="8.6")
    bench.ask("XREADGROUP GROUP g lost STREAMS s >")
    line = "XREADGROUP GROUP g {} BLOCK 0 CLAIM 500 STREAMS s >"
    parked = readers(bench, line.format("a"), line.format("b"))
    for reader in reversed(parked):
        reader.retry_ms = None
        bench.engine.retry(reader)
        assert not reader.done
        assert reader.retry_ms
    bench.engine.unpark(parked[0])
    bench.clock.step(500)
    bench.engine.retry(parked[1])
    assert parked[1].woken == 1
