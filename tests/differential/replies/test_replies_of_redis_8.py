"""Sequences of the commands and options that Redis 8 added: each reply is that of a live 8.6.

`sleep 5` in a sequence waits 5 ms in Redis, and advances our clock by the same time. Idle times are compared
only where a sequence asks which entries are idle long enough. Entries that were delivered in the same
millisecond are claimed by id here, and in the order of delivery in Redis (docs/compatibility.md), so no
sequence claims several entries again that a claim has delivered out of order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.persist.rdb.dump import restore_value
from penstock.persist.rdb.value import ValueLimits
from tests.support.engine.engines import Bench
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import REDIS_8_6
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import running_redis

FAR = "99999999999999"
SIX = [f"XADD s {n}-0 k {n}" for n in range(1, 7)]
GROUPED = [*SIX, "XGROUP CREATE s g 0"]
ROWS = "XPENDING s g - + 100"
SHOW = ["XRANGE s - +", "XINFO STREAM s", "XINFO GROUPS s"]
ALL_READ = [*GROUPED, "XREADGROUP GROUP g a STREAMS s >"]
# The order of delivery is 2 3 1 6 4 5, with some milliseconds between any two.
SPREAD = [
    *(*GROUPED, "XGROUP SETID s g 6-0"),
    *(
        word
        for n in (2, 3, 1, 6, 4, 5)
        for word in (f"XCLAIM s g a 0 {n}-0 FORCE JUSTID RETRYCOUNT {n}", "sleep 4")
    ),
]
TWO_GROUPS = [
    *(*ALL_READ, "XGROUP CREATE s h 0", "XREADGROUP GROUP h b COUNT 4 STREAMS s >"),
    *("XACK s g 1-0 2-0 5-0", "XACK s h 2-0 3-0"),
]
HUNDRED = [f"XADD s {n}-0 k v" for n in range(1, 101)]
SMALL_NODES = ["CONFIG SET stream-node-max-entries 10"]

SEQUENCES = {
    "claimed entries come longest idle first": [*SPREAD, "XREADGROUP GROUP g b CLAIM 0 STREAMS s >", ROWS],
    "a claim with a count takes the longest idle": [
        *(*SPREAD, "XREADGROUP GROUP g b CLAIM 0 COUNT 2 STREAMS s >", ROWS, "sleep 3"),
        *("XREADGROUP GROUP g c CLAIM 0 COUNT 3 STREAMS s >", ROWS, "sleep 3"),
        *("XREADGROUP GROUP g c CLAIM 0 COUNT 2 STREAMS s >", ROWS),
    ],
    "entries claimed again count once more": [
        *(*SPREAD, *["XREADGROUP GROUP g b CLAIM 0 COUNT 1 STREAMS s >", "sleep 2"] * 4),
        *("XREADGROUP GROUP g c CLAIM 0 STREAMS s >", ROWS),
    ],
    "idle entries come before new ones": [
        *(*GROUPED, "XREADGROUP GROUP g a COUNT 2 STREAMS s >", "sleep 30"),
        *("XREADGROUP GROUP g b COUNT 1 STREAMS s >", "XREADGROUP GROUP g c CLAIM 15 STREAMS s >"),
        *(ROWS, *SHOW),
    ],
    "a count is shared by idle and new entries": [
        *(*GROUPED, "XREADGROUP GROUP g a COUNT 2 STREAMS s >", "sleep 3"),
        *("XREADGROUP GROUP g c CLAIM 0 COUNT 3 STREAMS s >", ROWS, *SHOW, "sleep 3"),
        *("XREADGROUP GROUP g c CLAIM 0 COUNT 0 STREAMS s >", ROWS, *SHOW),
    ],
    "entries that are gone are skipped and stay pending": [
        *(*SPREAD, "XDEL s 2-0 1-0 5-0", "XREADGROUP GROUP g b CLAIM 0 COUNT 2 STREAMS s >", ROWS),
        *("sleep 3", "XREADGROUP GROUP g b CLAIM 0 STREAMS s >", ROWS),
        *("XDEL s 3-0 6-0 4-0", "XREADGROUP GROUP g b CLAIM 0 STREAMS s >", ROWS),
    ],
    "NOACK concerns new entries only": [
        *(*GROUPED, "XREADGROUP GROUP g a COUNT 2 STREAMS s >", "sleep 3"),
        *("XREADGROUP GROUP g c NOACK CLAIM 0 STREAMS s >", ROWS, *SHOW),
        *("XREADGROUP GROUP g c NOACK CLAIM 0 STREAMS s >", ROWS),
    ],
    "a history id ends the claims of the streams that follow": [
        *(*ALL_READ, "XADD t 1-0 k v", "XADD t 2-0 k v", "XGROUP CREATE t g 0"),
        *("XREADGROUP GROUP g a COUNT 1 STREAMS t >", "sleep 3"),
        *("XREADGROUP GROUP g b CLAIM 0 STREAMS s t 0 >", ROWS, "XPENDING t g - + 9"),
        *("XREADGROUP GROUP g b CLAIM 0 STREAMS t s > 0", ROWS, "XPENDING t g - + 9"),
        "XREADGROUP GROUP g b CLAIM 0 STREAMS s t 0 0",
    ],
    "a claim reads several streams": [
        *(*ALL_READ, "XADD t 1-0 k v", "XGROUP CREATE t g 0", "sleep 3"),
        *("XREADGROUP GROUP g b CLAIM 0 COUNT 2 STREAMS s t s > > >", ROWS),
        "XREADGROUP GROUP g b CLAIM 100000 STREAMS s t > >",
    ],
    "a claim of entries that the consumer owns": [
        *(*ALL_READ, "sleep 3", "XREADGROUP GROUP g a CLAIM 0 STREAMS s >", ROWS),
        *("XREADGROUP GROUP g a CLAIM 100000 STREAMS s >", "XREADGROUP GROUP g a STREAMS s 0"),
    ],
    "a claim after the group was set back": [
        *(*ALL_READ, "XGROUP SETID s g 2-0", "sleep 3"),
        *("XREADGROUP GROUP g b CLAIM 0 COUNT 8 STREAMS s >", ROWS, *SHOW),
    ],
    "deliveries at the largest count": [
        *(*ALL_READ, "sleep 3", "XCLAIM s g a 0 1-0 RETRYCOUNT 9223372036854775806 JUSTID", "sleep 3"),
        "XREADGROUP GROUP g b CLAIM 0 STREAMS s >",
    ],
    "codes of XDELEX": [
        *(*TWO_GROUPS, "XDELEX s ACKED IDS 7 1-0 2-0 3-0 4-0 5-0 6-0 9-0", *SHOW, ROWS),
        *("XDELEX s KEEPREF IDS 3 3-0 2-0 9-0", *SHOW, ROWS, "XDELEX s DELREF IDS 3 4-0 3-0 4-0"),
        *(ROWS, "XPENDING s h - + 9", *SHOW),
    ],
    "codes of XACKDEL": [
        *(*TWO_GROUPS, "XACKDEL s g ACKED IDS 7 1-0 2-0 3-0 4-0 5-0 6-0 9-0", *SHOW, ROWS),
        *("XACKDEL s h KEEPREF IDS 3 1-0 2-0 4-0", *SHOW, "XPENDING s h - + 9"),
        *("XREADGROUP GROUP h b STREAMS s >", "XACKDEL s h DELREF IDS 3 5-0 6-0 5-0", *SHOW),
    ],
    "XACKDEL of entries that are gone": [
        *(*ALL_READ, "XDEL s 1-0 2-0", "XACKDEL s g IDS 2 1-0 3-0", "XACKDEL s g ACKED IDS 1 2-0"),
        *(ROWS, *SHOW),
    ],
    "XDELEX ACKED without groups, with unread and with destroyed groups": [
        *(*SIX, "XDELEX s ACKED IDS 1 1-0", "XGROUP CREATE s g 3-0", "XDELEX s ACKED IDS 2 3-0 4-0"),
        *("XGROUP DESTROY s g", "XDELEX s ACKED IDS 1 4-0", *SHOW),
    ],
    "duplicates of a producer": [
        *(f"XADD s {FAR}-0 k v", "XADD s IDMP p a * k 1", "XADD s IDMP p a * k 2"),
        *("XADD s IDMP q a * k 3", "XADD s IDMP p b * k 4", "XADD s IDMP p a * k 5", *SHOW),
        *("XADD s IDMPAUTO p * k 1 l 2", "XADD s IDMPAUTO p * l 2 k 1", "XADD s IDMPAUTO p * k 2 l 1"),
        *("XADD s IDMPAUTO q * k 1 l 2", *SHOW, "XINFO STREAM s FULL"),
    ],
    "a message whose entry was deleted is still a duplicate": [
        *(f"XADD s {FAR}-0 k v", "XADD s IDMP p a * k 1", f"XDEL s {FAR}-1"),
        *("XADD s IDMP p a * k 2", *SHOW, "XTRIM s MAXLEN 0", "XADD s IDMP p a * k 2", *SHOW),
    ],
    "the number of messages is limited": [
        *(f"XADD s {FAR}-0 k v", "XCFGSET s IDMP-MAXSIZE 2"),
        *(f"XADD s IDMP p m{n} * k v" for n in (1, 2, 3, 2, 3, 1, 2, 3)),
        *(*SHOW, "XADD s IDMP q m1 * k v", *SHOW),
    ],
    "other settings forget the messages, the same ones do not": [
        *(f"XADD s {FAR}-0 k v", "XADD s IDMP p a * k v", "XCFGSET s IDMP-DURATION 100", *SHOW),
        *("XADD s IDMP p a * k v", "XCFGSET s IDMP-DURATION 99", *SHOW, "XADD s IDMP p a * k v"),
        *("XCFGSET s IDMP-MAXSIZE 99 IDMP-DURATION 99", *SHOW, "XADD s IDMP p a * k v", *SHOW),
    ],
    "messages through COPY, RENAME, SWAPDB and RESTORE": [
        *(f"XADD s {FAR}-0 k v", "XADD s IDMP p a * k v", "XCFGSET s IDMP-MAXSIZE 7"),
        *("XADD s IDMP p a * k v", "COPY s t", "XINFO STREAM t", "XADD t IDMP p a * k v"),
        *("RENAME t u", "XADD u IDMP p a * k v", "MOVE u 1", "SELECT 1", "XADD u IDMP p a * k v"),
        *("SWAPDB 0 1", "XADD s IDMP p a * k v", "XINFO STREAM s", "FLUSHDB", "XADD s IDMP p a 5 k v"),
        *(f"XADD s {FAR}-0 k v", "XADD s IDMP p a * k v", "XINFO STREAM s", "SELECT 0"),
        *("XADD u IDMP p a * k v", "XINFO STREAM u", "FLUSHALL"),
    ],
    "XIDMPRECORD": [
        *(f"XADD s {FAR}-0 k v", f"XADD s {FAR}-1 k v", f"XIDMPRECORD s p a {FAR}-1"),
        *("XADD s IDMP p a * k v", f"XIDMPRECORD s p a {FAR}-0", f"XIDMPRECORD s p a {FAR}-1"),
        *(f"XDEL s {FAR}-0", f"XIDMPRECORD s p b {FAR}-0", *SHOW),
    ],
    "configured defaults for new streams": [
        *("XADD old 1-0 k v", "CONFIG SET stream-idmp-duration 55", "CONFIG SET stream-idmp-maxsize 66"),
        *("XADD s 1-0 k v", *SHOW[:2], "XINFO STREAM old", "XGROUP CREATE t g $ MKSTREAM"),
        *("XINFO STREAM t", "COPY old copy", "XINFO STREAM copy"),
        *("CONFIG SET stream-idmp-duration 100", "CONFIG SET stream-idmp-maxsize 100"),
        *("XINFO STREAM s", "XINFO STREAM t"),
    ],
}  # fmt: skip


def trim_sequences() -> Iterator[tuple[str, list[str]]]:
    """Trims of three nodes of ten entries; some entries are pending, or not read yet."""
    for pending, read, trim in [
        ("", 30, "MAXLEN ~ 0 ACKED"),
        ("", 30, "MAXLEN ~ 5 ACKED"),
        ("5", 30, "MAXLEN ~ 0 ACKED"),
        ("15", 30, "MAXLEN ~ 0 ACKED"),
        ("5", 30, "MAXLEN ~ 15 ACKED"),
        ("5", 30, "MAXLEN 15 ACKED"),
        ("5", 30, "MAXLEN 3 ACKED"),
        ("5 25", 30, "MINID 27 ACKED"),
        ("5", 30, "MINID ~ 27 ACKED"),
        ("5", 30, "MINID ~ 27 ACKED LIMIT 10"),
        ("5", 30, "MAXLEN ~ 0 LIMIT 12 ACKED"),
        ("5", 30, "MAXLEN ~ 0 LIMIT 12 DELREF"),
        ("5", 30, "MAXLEN ~ 5 DELREF"),
        ("5 25", 30, "MAXLEN 3 DELREF"),
        ("5 25", 30, "MINID 23 DELREF"),
        ("5 25", 30, "MINID ~ 23 DELREF"),
        ("5 25", 30, "MINID 23 KEEPREF"),
        ("", 12, "MAXLEN 3 ACKED"),
        ("", 12, "MAXLEN ~ 3 ACKED"),
        ("", 20, "MAXLEN ~ 3 ACKED"),
        ("5", 30, "MAXLEN 0 ACKED"),
        ("1 2 3 4 5 6 7 8 9 10", 30, "MAXLEN ~ 0 ACKED"),
        ("1 2 3 4 5 6 7 8 9 10", 30, "MAXLEN ~ 12 ACKED"),
        ("1 2 3 4 5 6 7 8 9 10", 30, "MAXLEN 12 ACKED"),
        ("1 2 3 4 5 6 7 8 9", 30, "MAXLEN ~ 25 ACKED"),
        ("1 2 3 4 5 6 7 8 9", 30, "MAXLEN 25 ACKED"),
        ("30", 30, "MAXLEN 0 ACKED"),
        ("1 11 21", 30, "MAXLEN 0 ACKED"),
        ("10 20 30", 30, "MAXLEN ~ 0 ACKED"),
        ("1 11 21", 30, "MAXLEN 1 DELREF"),
    ]:
        kept = set(pending.split())
        acked = [str(n) for n in range(1, read + 1) if str(n) not in kept]
        lines = [f"XADD s {n}-0 k v" for n in range(1, 31)]
        lines += ["XGROUP CREATE s g 0", f"XREADGROUP GROUP g a COUNT {read} STREAMS s >"]
        lines += [f"XACK s g {' '.join(acked)}", f"XTRIM s {trim}", *SHOW, ROWS]
        yield f"{pending or 'nothing'} pending of {read}, {trim}", lines


TRIMS = dict(trim_sequences())


@pytest.fixture(scope="module")
def live() -> Iterator[RawRedis]:
    REDIS_8_6.need()
    with running_redis(program=REDIS_8_6) as server, RawRedis(server.port) as redis:
        yield redis


def compare(live: RawRedis, bench: Bench, lines: list[str]) -> None:
    live.ask([[b"FLUSHALL"], [b"SELECT", b"0"]])
    for line in lines:
        if line.startswith("sleep "):
            wait_ms = int(line.split()[1])
            time.sleep(wait_ms / 1000)
            bench.clock.at_ms += wait_ms
            continue
        [theirs] = live.ask([line.encode().split()])
        assert without_times(answer(bench, line)) == without_times(theirs), line


def answer(bench: Bench, line: str) -> Any:
    """The reply of our engine; of CONFIG and of SELECT, which the server runs, the effect."""
    words = line.split()
    context = bench.engine.context
    if words[0] == "SELECT":
        context.keyspace = context.databases[int(words[1])]
        return "OK"
    if words[0] == "CONFIG":
        limits, value = bench.engine.limits, int(words[3])
        settings = limits.idempotency
        if words[2] == "stream-idmp-duration":
            limits.idempotency = type(settings)(value, settings.size_max)
        else:
            limits.idempotency = type(settings)(settings.duration_s, value)
        return "OK"
    return bench.ask(line)


def without_times(reply: Any) -> Any:
    """A reply without idle times (the third of four items) and moments of this century."""
    if isinstance(reply, list):
        if len(reply) == 4 and isinstance(reply[2], int) and isinstance(reply[3], int):
            return [reply[0], without_times(reply[1]), "idle", reply[3]]
        return [without_times(item) for item in reply]
    return "moment" if isinstance(reply, int) and 1.5e12 < reply < 2**62 else reply


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_replies_are_those_of_redis(live: RawRedis, name: str) -> None:
    bench = Bench("8.6")
    bench.engine.context.keyspace.values.clear()
    compare(live, bench, SEQUENCES[name])


@pytest.mark.parametrize("name", TRIMS)
def test_trims_leave_what_groups_need_as_in_redis(live: RawRedis, name: str) -> None:
    bench = Bench("8.6")
    bench.engine.limits.entries_max = 10
    live.ask([b"CONFIG SET stream-node-max-entries 10".split()])
    try:
        compare(live, bench, TRIMS[name])
    finally:
        live.ask([b"CONFIG SET stream-node-max-entries 100".split()])


def test_idle_times_and_counts_of_claims_are_numbers(live: RawRedis) -> None:
    bench = Bench("8.6")
    compare(live, bench, [*ALL_READ, "sleep 20"])
    words = "XREADGROUP GROUP g b CLAIM 10 STREAMS s >"
    ours, [theirs] = bench.ask(words), live.ask([words.encode().split()])
    assert [row[2:] for row in ours[0][1]] == [[20, 1]] * 6
    assert all(20 <= row[2] < 5000 and row[3] == 1 for row in theirs[0][1])


def test_maps_of_resp3_have_the_order_of_redis(live: RawRedis) -> None:
    """Replies are compared as texts: two dicts with another order are equal."""
    lines = [*ALL_READ, f"XADD s {FAR}-0 k v", "XADD s IDMP p a * k v", "HELLO 3", "XINFO STREAM s"]
    lines += ["XINFO STREAM s FULL", "XINFO GROUPS s", "XINFO CONSUMERS s g"]
    lines += ["XREADGROUP GROUP g b CLAIM 3600000 STREAMS s >", "HELLO 2"]
    words = [line.encode().split() for line in lines]
    live.ask([[b"FLUSHALL"]])
    with running_penstock() as server, RawRedis(server.port) as ours:
        found = [texts(link.ask(words)) for link in (ours, live)]
    start = lines.index("HELLO 3") + 1
    assert found[0][start:-1] == found[1][start:-1]


def texts(replies: list[Any]) -> list[str]:
    return [repr(_unordered(reply)) for reply in replies]


def _unordered(reply: Any) -> Any:
    """Maps as lists of pairs; without times."""
    if isinstance(reply, dict):
        return [
            (key, "time" if key in (b"idle", b"inactive") else _unordered(value))
            for key, value in reply.items()
        ]
    if isinstance(reply, list):
        return [_unordered(item) for item in reply]
    return "moment" if isinstance(reply, int) and 1.5e12 < reply < 2**62 else reply


# --- Deliberate differences -----------------------------------------------------------------------


def ids_read(reply: Any) -> list[bytes]:
    return [row[0] for row in reply[0][1]]


def test_entries_delivered_in_one_millisecond_are_claimed_by_id(live: RawRedis) -> None:
    """In Redis in the order of delivery, until it restarts."""
    bench = Bench("8.6")
    compare(live, bench, [*SPREAD, "XREADGROUP GROUP g b CLAIM 0 STREAMS s >", "sleep 3"])
    line = "XREADGROUP GROUP g c CLAIM 0 STREAMS s >"
    theirs = ids_read(live.ask([line.encode().split()])[0])
    assert theirs == [b"2-0", b"3-0", b"1-0", b"6-0", b"4-0", b"5-0"]
    assert ids_read(bench.ask(line)) == sorted(theirs)


def test_an_expired_name_is_no_duplicate(live: RawRedis) -> None:
    """In Redis it is one until a job that runs about once a second has removed it."""
    bench = Bench("8.6")
    lines = ["XADD s 1-0 k v", "XIDMPRECORD s p m 1-0", "XADD s IDMP p m * k v", "XLEN s"]
    words = [line.encode().split() for line in lines]
    *_, theirs = live.ask([[b"FLUSHALL"], [b"MULTI"], *words, [b"EXEC"]])
    assert theirs[2:] == [b"1-0", 1]
    assert [bench.ask(line) for line in lines][-1] == 2


def test_a_trim_with_delref_removes_the_records_of_entries_that_were_gone(live: RawRedis) -> None:
    bench = Bench("8.6")
    compare(live, bench, [*ALL_READ, "XDEL s 1-0 3-0", "XTRIM s MINID 5-0 DELREF"])
    [theirs] = live.ask([ROWS.encode().split()])
    assert [row[0] for row in theirs] == [b"1-0", b"3-0", b"5-0", b"6-0"]
    assert [row[0] for row in bench.ask(ROWS)] == [b"5-0", b"6-0"]


def test_a_message_named_after_its_fields_is_not_known_from_a_file_of_redis(live: RawRedis) -> None:
    bench = Bench("8.6")
    lines = [f"XADD s {FAR}-0 k v", "XADD s IDMPAUTO p * k v", "DUMP s"]
    *_, payload = live.ask([[b"FLUSHALL"], *(line.encode().split() for line in lines)])
    version = bench.engine.context.compat.rdb_version
    limits = ValueLimits(bench.engine.limits, bench.engine.list_limits)
    bench.engine.context.keyspace.put(b"s", restore_value(payload, version, limits))
    repeated = "XADD s IDMPAUTO p * k v"
    assert live.ask([repeated.encode().split()]) == [f"{FAR}-1".encode()]
    assert [bench.ask(repeated) for _ in range(2)] == [f"{FAR}-2".encode()] * 2
