"""Clients blocked on a list: who is served when, with what, and in which order."""

from __future__ import annotations

import pytest

from penstock.engine.waiters import Blocked
from penstock.reply import NULL_ARRAY
from tests.support.engine.engines import SYNTAX, WRONG_TYPE, Bench, Reader, command_of
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import Refusal

NO_FLOAT = "ERR timeout is not a float or out of range"
NEGATIVE = "ERR timeout is negative"
TOO_FAR = "ERR timeout is out of range"


@pytest.fixture(params=["7.0", "7.4"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


def parked(bench: Bench, *lines: str) -> list[Reader]:
    return [bench.park(line) for line in lines]


def got(readers: list[Reader]) -> list[object]:
    return [reader.got for reader in readers]


def waiting(bench: Bench) -> int:
    """The number of waiters; all others must have left every queue."""
    waiters = bench.engine.waiters
    assert waiters.count == bench.engine.context.waiting == len(waiters.all())
    return waiters.count


def transaction(bench: Bench, *lines: str) -> None:
    """Run commands one after the other; waiters are served at the end."""
    for line in lines:
        command, pieces = command_of(line.split())
        bench.engine.run(command, frame_of(*pieces))
    bench.engine.serve_waiters()


def put(bench: Bench, key: bytes, value: object) -> None:
    """Set a key's value directly, as SET or RENAME would."""
    context = bench.engine.context
    context.keyspace.put(key, value)
    context.touch(key)
    bench.engine.serve_waiters()


# --- At once --------------------------------------------------------------------------------------


def test_an_existing_element_is_taken_at_once(bench: Bench) -> None:
    bench.ask("RPUSH k a b c d")
    assert bench.ask("BLPOP k 0") == [b"k", b"a"]
    assert bench.ask("BRPOP k 0") == [b"k", b"d"]
    assert bench.ask("BLMOVE k m LEFT RIGHT 0") == b"b"
    assert bench.ask("BRPOPLPUSH k m 0") == b"c"
    assert bench.ask("LRANGE m 0 -1") == [b"c", b"b"]
    assert bench.ask("LLEN k") == 0


def test_the_first_key_that_has_elements_wins(bench: Bench) -> None:
    bench.ask("RPUSH b 1")
    bench.ask("RPUSH c 2")
    assert bench.ask("BLPOP a b c 0") == [b"b", b"1"]
    assert bench.ask("BLPOP c b a 0") == [b"c", b"2"]


def test_a_list_before_a_key_of_another_type_is_served(bench: Bench) -> None:
    bench.ask("RPUSH k 1")
    assert bench.ask("BLPOP new k string 0") == [b"k", b"1"]
    assert bench.ask("BLPOP new string k 0") == Refusal(WRONG_TYPE)


def test_several_elements_are_taken_at_once(bench: Bench) -> None:
    bench.ask("RPUSH k a b c d e")
    assert bench.ask("BLMPOP 0 2 new k LEFT COUNT 2") == [b"k", [b"a", b"b"]]
    assert bench.ask("BLMPOP 0 1 k RIGHT COUNT 2") == [b"k", [b"e", b"d"]]
    assert bench.ask("BLMPOP 0 1 k LEFT") == [b"k", [b"c"]]
    assert bench.ask("EXISTS k") == 0


# --- Timeouts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("0.0", 0),
        ("-0", 0),
        ("-0.0001", 0),
        ("-0.001", 0),  # in a long double it rounds up to 0; -0.002 does not
        ("1", 1000),
        ("1.5", 1500),
        ("0.001", 1),
        ("0.0011", 2),
        ("1e-4950", 1),
        ("+2e1", 20_000),
        ("0x10", 16_000),
        ("0x1p-3", 125),
        ("9000000000000000", 9 * 10**18),
    ],
)
def test_a_timeout_is_in_seconds_rounded_up_to_milliseconds(
    bench: Bench, text: str, ms: int
) -> None:
    pops = f"BLPOP k {text}", f"BLMPOP {text} 1 k LEFT"
    for line in (*pops, f"BRPOPLPUSH k m {text}", f"BLMOVE k m LEFT LEFT {text}"):
        [reader] = parked(bench, line)
        assert reader.timeout_ms == ms


@pytest.mark.parametrize("text", ["x", "", "nan", " 1", "1 ", "1_0", "1e", "1e5000", "1e-5000"])
def test_a_timeout_that_is_no_number_is_refused(bench: Bench, text: str) -> None:
    bench.ask("RPUSH k a")
    assert bench.run("BLPOP", "k", text) == Refusal(NO_FLOAT)
    assert bench.run("BRPOPLPUSH", "string", "m", text) == Refusal(NO_FLOAT)
    assert bench.run("BLMPOP", text, "1", "string", "LEFT") == Refusal(NO_FLOAT)
    assert bench.ask("LLEN k") == 1


@pytest.mark.parametrize("text", ["-1", "-0.002", "-1e30", "-inf"])
def test_a_negative_timeout_is_refused(bench: Bench, text: str) -> None:
    assert bench.run("BRPOP", "k", text) == Refusal(NEGATIVE)


@pytest.mark.parametrize("text", ["9.3e15", "1e400", "inf"])
def test_a_timeout_beyond_64_bits_is_negative_to_7_0_and_too_far_later(text: str) -> None:
    assert Bench("7.0").run("BLPOP", "k", text) == Refusal(NEGATIVE)
    assert Bench("7.2").run("BLPOP", "k", text) == Refusal(TOO_FAR)


def test_a_timeout_that_ends_beyond_64_bits_is_refused_from_7_2_on() -> None:
    line = "BLPOP k 9223372036854775"
    assert parked(Bench("7.0"), line)[0].timeout_ms == 9223372036854775000
    assert Bench("7.2").ask(line) == Refusal(TOO_FAR)


def test_the_ends_are_read_before_the_timeout(bench: Bench) -> None:
    assert bench.ask("BLMOVE k m UP LEFT x") == Refusal(SYNTAX)
    assert bench.ask("BLMOVE k m LEFT LEFT x") == Refusal(NO_FLOAT)


def test_a_timeout_returns_a_null_array(bench: Bench) -> None:
    readers = parked(bench, "BLPOP k 1", "BLMOVE k m LEFT LEFT 1", "BRPOPLPUSH k m 1")
    readers += parked(bench, "BLMPOP 1 1 k LEFT COUNT 5")
    assert [reader.on_timeout for reader in readers] == [NULL_ARRAY] * 4
    for reader in readers:
        bench.engine.unpark(reader)
    assert waiting(bench) == 0


def test_in_a_transaction_nobody_waits(bench: Bench) -> None:
    """The null of a move differs from the one after a timeout; as in Redis 7.0."""
    bench.engine.context.may_block = False
    assert bench.ask("BLPOP k m 0") is NULL_ARRAY
    assert bench.ask("BLMOVE k m LEFT LEFT 0") is None
    assert bench.ask("BRPOPLPUSH k m 0") is None
    assert bench.ask("BLPOP string 0") == Refusal(WRONG_TYPE)
    assert bench.ask("BLMPOP 0 2 k m LEFT") is NULL_ARRAY
    assert bench.ask("BLMPOP 0 2 k string LEFT") == Refusal(WRONG_TYPE)


# --- Being served ---------------------------------------------------------------------------------


def test_waiters_are_served_in_order(bench: Bench) -> None:
    readers = parked(bench, "BLPOP k 0", "BRPOP k 0", "BLPOP k 0")
    assert bench.ask("RPUSH k a") == 1
    assert got(readers) == [[b"k", b"a"], None, None]
    bench.ask("RPUSH k b")
    bench.ask("RPUSH k c")
    assert got(readers) == [[b"k", b"a"], [b"k", b"b"], [b"k", b"c"]]
    assert waiting(bench) == 0


def test_a_push_of_several_serves_several_waiters_and_replies_as_without_them(bench: Bench) -> None:
    readers = parked(bench, "BLPOP k 0", "BRPOP k 0")
    assert bench.ask("RPUSH k a b c") == 3
    assert got(readers) == [[b"k", b"a"], [b"k", b"c"]]
    assert bench.ask("LRANGE k 0 -1") == [b"b"]


def test_a_waiter_that_takes_several_leaves_the_rest_to_the_next(bench: Bench) -> None:
    pops = ["BLMPOP 0 2 j k LEFT COUNT 2", "BLMPOP 0 1 k RIGHT COUNT 9", "BLPOP k 0"]
    readers = parked(bench, *pops)
    assert bench.ask("RPUSH k a b c d") == 4
    assert got(readers) == [[b"k", [b"a", b"b"]], [b"k", [b"d", b"c"]], None]
    assert (waiting(bench), bench.ask("EXISTS k")) == (1, 0)
    bench.ask("RPUSH k e")
    assert got(readers)[2] == [b"k", b"e"]


def test_a_waiter_that_takes_several_does_not_wait_for_all_of_them(bench: Bench) -> None:
    [reader] = parked(bench, "BLMPOP 0 1 k LEFT COUNT 5")
    bench.ask("RPUSH k a")
    assert reader.got == [b"k", [b"a"]]


def test_a_left_push_is_complete_before_a_waiter_is_served(bench: Bench) -> None:
    [reader] = parked(bench, "BLPOP k 0")
    bench.ask("LPUSH k a b c")
    assert reader.got == [b"k", b"c"]


def test_the_last_element_given_away_takes_the_key_with_it(bench: Bench) -> None:
    parked(bench, "BLPOP k 0")
    assert bench.ask("LPUSH k a") == 1
    assert b"k" not in bench.engine.context.keyspace.values


def test_a_waiter_for_several_keys_is_served_by_one_and_leaves_all_queues(bench: Bench) -> None:
    [reader] = parked(bench, "BLPOP a b a 0")
    bench.ask("RPUSH b 1")
    assert (reader.got, waiting(bench)) == ([b"b", b"1"], 0)
    bench.ask("RPUSH a 2")
    assert (reader.woken, bench.ask("LLEN a")) == (1, 1)


def test_a_key_in_another_database_serves_nobody(bench: Bench) -> None:
    [reader] = parked(bench, "BLPOP k 0")
    context = bench.engine.context
    context.keyspace = context.databases[1]
    bench.ask("RPUSH k a")
    assert (reader.woken, bench.ask("LLEN k")) == (0, 1)
    context.keyspace = context.databases[0]
    bench.ask("RPUSH k b")
    assert reader.got == [b"k", b"b"]


def test_only_one_of_many_waiters_runs_without_result(bench: Bench) -> None:
    """A thousand clients may wait for one list."""
    readers = parked(bench, *["BLPOP k 0"] * 20)
    asked = 0
    run = readers[0].command.run

    def counting(context: object, frame: object) -> object:
        nonlocal asked
        asked += 1
        return run(context, frame)  # type: ignore[arg-type]

    for reader in readers:
        reader.command = type(reader.command)("BLPOP", counting, -3, 0, (1, -2, 1), "")  # type: ignore[arg-type]
    bench.ask("RPUSH k a b")
    assert (asked, waiting(bench)) == (3, 18)


# --- Keys of other types --------------------------------------------------------------------------


def test_a_waiter_keeps_waiting_when_its_key_gets_another_type(bench: Bench) -> None:
    readers = parked(bench, "BLPOP k 0", "BLMOVE k m LEFT LEFT 0", "BLMPOP 0 1 k LEFT")
    bench.ask("XADD k 1-0 f v")
    put(bench, b"k", b"a string")
    assert (got(readers), waiting(bench)) == ([None, None, None], 3)
    bench.engine.context.keyspace.remove(b"k")
    bench.ask("RPUSH k a b c")
    assert got(readers) == [[b"k", b"a"], b"b", [b"k", [b"c"]]]


def test_another_key_of_the_same_reader_may_hold_anything(bench: Bench) -> None:
    [reader] = parked(bench, "BLPOP k m 0")
    bench.ask("XADD k 1-0 f v")
    bench.ask("RPUSH m a")
    assert reader.got == [b"m", b"a"]


def test_a_list_where_an_entry_was_waited_for_wakes_the_readers_of_lists_only(bench: Bench) -> None:
    stream_reader, list_reader = parked(bench, "XREAD BLOCK 0 STREAMS other $", "BLPOP k 0")
    bench.ask("RPUSH k a")
    assert (stream_reader.woken, list_reader.got) == (0, [b"k", b"a"])


# --- Moves ----------------------------------------------------------------------------------------


def test_a_move_that_waited_serves_the_waiters_of_its_destination(bench: Bench) -> None:
    readers = parked(bench, "BLPOP c 0", "BLMOVE b c LEFT LEFT 0", "BRPOPLPUSH a b 0")
    assert bench.ask("RPUSH a x") == 1
    assert got(readers) == [[b"c", b"x"], b"x", b"x"]
    assert waiting(bench) == 0
    assert bench.ask("LLEN a") == bench.ask("LLEN b") == bench.ask("LLEN c") == 0


def test_a_move_serves_the_waiters_of_its_destination(bench: Bench) -> None:
    bench.ask("RPUSH a x y")
    readers = parked(bench, "BLPOP b 0", "BLPOP c 0")
    assert bench.ask("LMOVE a b LEFT LEFT") == b"x"
    assert bench.ask("BLMOVE a c LEFT LEFT 0") == b"y"
    assert got(readers) == [[b"b", b"x"], [b"c", b"y"]]


def test_a_move_does_not_wait_for_its_destination(bench: Bench) -> None:
    readers = parked(bench, "BLMOVE a b LEFT LEFT 0", "BLPOP b 0")
    bench.ask("RPUSH b x")
    assert (got(readers), waiting(bench)) == ([None, [b"b", b"x"]], 1)


def test_a_list_that_turns_in_itself_serves_everyone(bench: Bench) -> None:
    readers = parked(bench, *["BLMOVE k k LEFT RIGHT 0"] * 2, "BLPOP k 0", "BLPOP k 0")
    bench.ask("RPUSH k a b c")
    assert got(readers) == [b"a", b"b", [b"k", b"c"], [b"k", b"a"]]
    assert bench.ask("LRANGE k 0 -1") == [b"b"]


def test_two_moves_in_a_circle_end(bench: Bench) -> None:
    readers = parked(bench, "BLMOVE a b LEFT LEFT 0", "BLMOVE b a LEFT LEFT 0")
    bench.ask("RPUSH a x")
    assert (got(readers), waiting(bench)) == ([b"x", b"x"], 0)
    assert bench.ask("LRANGE a 0 -1") == [b"x"]


def test_a_destination_of_another_type_is_refused_when_there_is_an_element(bench: Bench) -> None:
    """Its element goes to the next waiter."""
    readers = parked(bench, "BLMOVE k string LEFT LEFT 0", "BLPOP k 0")
    bench.ask("RPUSH k a")
    assert got(readers) == [Refusal(WRONG_TYPE), [b"k", b"a"]]


# --- Transactions ---------------------------------------------------------------------------------


def test_a_key_that_a_transaction_adds_and_removes_wakes_nobody(bench: Bench) -> None:
    [reader] = parked(bench, "BLPOP k 0")
    transaction(bench, "RPUSH k a", "LPOP k")
    assert (reader.woken, waiting(bench)) == (0, 1)
    transaction(bench, "RPUSH k a", "LPUSH k b", "LTRIM k 1 1")
    assert reader.got == [b"k", b"a"]


def test_a_waiter_for_several_keys_filled_by_a_transaction_gets_its_first_key(
    bench: Bench,
) -> None:
    """As in 7.2; 7.0 returned the key that was pushed to first."""
    [reader] = parked(bench, "BLPOP a b 0")
    transaction(bench, "RPUSH b 1", "RPUSH a 2")
    assert reader.got == [b"a", b"2"]
    assert bench.ask("LRANGE b 0 -1") == [b"1"]


def test_a_blocked_command_keeps_its_words_when_the_frame_is_used_again(bench: Bench) -> None:
    command, pieces = command_of(["BLPOP", "k", "0"])
    frame = frame_of(*pieces)
    blocked = bench.engine.execute(command, frame)
    assert isinstance(blocked, Blocked)
    reader = Reader(command, blocked, bench.engine.context.keyspace)
    bench.engine.park(reader)
    frame.clear()
    frame.add(b"XLEN")
    bench.ask("RPUSH k a")
    assert reader.got == [b"k", b"a"]
