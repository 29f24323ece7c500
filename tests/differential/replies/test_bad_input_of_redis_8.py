"""Bad arguments of the commands and options that Redis 8 added: the replies of Redis, and no data change.

As in test_bad_input.py, each line goes to both servers over a raw socket, on its own and in a transaction,
in RESP2 and in RESP3. The stream `f` ends in the future, so the ids that XADD makes for it are the same on
both servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.campaign import SOAK
from tests.support.random.stream_commands import Words
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import BY_LEVEL
from tests.support.servers.raw_redis import RawRedis, Refusal
from tests.support.servers.redis_server import running_redis

LEVEL = "8.6"
FAR = "99999999999999"
TOP = b"18446744073709551615"

SETUP = [
    *("FLUSHALL", *(f"XADD s {n}-1 k v" for n in range(1, 7)), "XDEL s 5-1"),
    *("XGROUP CREATE s g 0", "XGROUP CREATE s h 2-1", "XGROUP CREATE s none 0"),
    "XREADGROUP GROUP g a COUNT 4 STREAMS s >",
    "XCLAIM s g b 0 3-1 JUSTID",
    "XCLAIM s g a 0 1-1 2-1 IDLE 1800000 RETRYCOUNT 1 JUSTID",
    "XCLAIM s h a 0 1-1 6-1 FORCE IDLE 1800000 RETRYCOUNT 1 JUSTID",
    *("XACK s g 4-1", "XADD t 1-1 k v", "XGROUP CREATE t g 0"),
    *(f"XADD f {FAR}-0 k v", "XADD f IDMP p m * k v", "XADD f IDMPAUTO p * k w"),
    "XGROUP CREATE f g 0",
    *("SET string x", "RPUSH list a b c", "XGROUP CREATE e g 0 MKSTREAM"),
]
LOOK = [
    *("XRANGE s - +", "XRANGE f - +", "XRANGE t - +", "XINFO GROUPS s", "XINFO GROUPS t", "DBSIZE"),
    *("XINFO STREAM s", "XINFO STREAM t", "XINFO STREAM f", "XINFO STREAM e", "TYPE new"),
    *("XPENDING s g - + 100", "XPENDING s h - + 100", "XPENDING t g - + 100", "XPENDING f g"),
    *("GET string", "LRANGE list 0 -1"),
]

NUMBERS = [
    *(b"-1", b"0", b"-0", b"", b"+5", b"007", b"5", b" 5", b"5 ", b"1e3", b"1.0", b"0x10", b"abc", b"-"),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"-9223372036854775809"),
    *(TOP, b"99999999999999999999999", "５".encode(), b"2147483647", b"2147483648", b"4294967296"),
    *(b"4294967297", b"5\x00", b"1", b"2", b"3", b"86400", b"86401", b"10000", b"10001", b"100"),
]  # fmt: skip
WITH_A_NUMBER = """
XDELEX s IDS ? 1-1 2-1
XDELEX s KEEPREF IDS ? 1-1 2-1 9-9
XDELEX s IDS ? 1-1 2-1 ACKED
XDELEX missing IDS ? 1-1 2-1
XDELEX missing IDS ? nonsense
XACKDEL s g IDS ? 1-1 2-1
XACKDEL s g IDS ? 1-1 2-1 DELREF
XACKDEL s missing IDS ? 1-1 2-1
XACKDEL missing g IDS ? 1-1 2-1
XREADGROUP GROUP g c CLAIM ? STREAMS e >
XREADGROUP GROUP g c CLAIM ? COUNT 1 STREAMS t >
XREADGROUP GROUP g c CLAIM ? STREAMS missing >
XREADGROUP GROUP g c CLAIM ? STREAMS s 0
XREAD CLAIM ? STREAMS s 0
XCFGSET f IDMP-DURATION ?
XCFGSET f IDMP-MAXSIZE ?
XCFGSET s IDMP-DURATION ? IDMP-MAXSIZE 5
XCFGSET s IDMP-DURATION 5 IDMP-MAXSIZE ?
XCFGSET missing IDMP-DURATION ?
XCFGSET string IDMP-MAXSIZE ?
XADD f IDMP p ? * k v
XADD f IDMP ? m * k v
XADD f IDMPAUTO ? * k v
XADD s MAXLEN ? ACKED 9-9 k v
XADD s MAXLEN ~ ? DELREF 9-9 k v
XADD s ACKED MAXLEN ~ 0 LIMIT ? 9-9 k v
XTRIM s MAXLEN ? ACKED
XTRIM s DELREF MAXLEN ?
XTRIM s MAXLEN ~ 0 LIMIT ? ACKED
XIDMPRECORD f p ? 99999999999999-0
CONFIG SET stream-idmp-duration ?
CONFIG SET stream-idmp-maxsize ?
"""

IDS = [
    *(b"-", b"+", b"*", b"$", b">", b"", b"1-", b"-1", b"1-2-3", b" 1-1", b"01-1", b"1-*", b"0-0", b"(1-1"),
    *(TOP + b"-" + TOP, TOP, b"18446744073709551616", b"1" * 127, b"1" * 128, b"1-1\x00", b"\xff", b"\r\n"),
    *(b"1-1", b"2-1", b"3-1", b"4-1", b"5-1", b"6-1", b"9-9", b"1", b"99999999999999-0", b"IDS", b"ACKED"),
]  # fmt: skip
WITH_AN_ID = """
XDELEX s IDS 1 ?
XDELEX s IDS 2 1-1 ?
XDELEX s DELREF IDS 2 1-1 ?
XDELEX s ACKED IDS 2 ? 4-1
XDELEX missing IDS 1 ?
XDELEX string IDS 1 ?
XACKDEL s g IDS 1 ?
XACKDEL s g KEEPREF IDS 2 1-1 ?
XACKDEL s h DELREF IDS 2 ? 1-1
XACKDEL s h ACKED IDS 2 1-1 ?
XACKDEL s missing IDS 1 ?
XACKDEL missing g IDS 1 ?
XTRIM s MINID ? ACKED
XTRIM s MINID = ? DELREF
XADD s ACKED MINID ? 9-9 k v
XADD f IDMP p new ? k v
XADD f IDMPAUTO p ? k v
XIDMPRECORD f p new ?
XIDMPRECORD f p m ?
XIDMPRECORD missing p new ?
XIDMPRECORD string p new ?
XREADGROUP GROUP g c CLAIM 3600000 STREAMS s ?
XREADGROUP GROUP g c CLAIM 3600000 STREAMS s t ? >
XREADGROUP GROUP g c CLAIM 3600000 STREAMS t s > ?
"""

LINES = """
XDELEX
XDELEX s
XDELEX s IDS
XDELEX s IDS 1
XDELEX s 1-1
XDELEX s IDS 1 1-1
XDELEX s ids 1 1-1
XDELEX s Ids 1 1-1 AcKed
XDELEX s keepref IDS 1 1-1
XDELEX s DelRef IDS 1 1-1
XDELEX s KEEPREF KEEPREF IDS 1 1-1
XDELEX s KEEPREF DELREF IDS 1 1-1
XDELEX s DELREF ACKED IDS 1 1-1
XDELEX s ACKED IDS 1 4-1 KEEPREF
XDELEX s IDS 1 1-1 DELREF DELREF
XDELEX s IDS 1 1-1 IDS 1 2-1
XDELEX s IDS 1 1-1 IDS 2 2-1
XDELEX s IDS 2 1-1 2-1 IDS 1 3-1 ACKED
XDELEX s IDS 1 1-1 2-1
XDELEX s IDS 2 1-1 ACKED
XDELEX s IDS 3 1-1 2-1
XDELEX s IDS 2 1-1 1-1
XDELEX s ACKED
XDELEX s ACKED KEEPREF x
XDELEX s ACKED IDS 1
XDELEX s DELREF 1-1 2-1
XDELEX s FOO IDS 1 1-1
XDELEX s IDS 1 1-1 FOO
XDELEX s IDS 1 nonsense FOO
XDELEX missing IDS 2 1-1 2-1
XDELEX missing IDS 2 nonsense 2-1
XDELEX missing FOO IDS 1 1-1
XDELEX missing IDS 0 1-1
XDELEX string IDS 1 1-1
XDELEX list FOO IDS 0 1-1
XDELEX string 1 2 3
XDELEX IDS 1 1-1
XDELEX s IDS 4 4-1 5-1 6-1 1-1 ACKED
XDELEX s IDS 3 1-1 5-1 9-9 DELREF
XDELEX s IDS 3 1-1 5-1 9-9 KEEPREF
XACKDEL
XACKDEL s g
XACKDEL s g IDS
XACKDEL s g IDS 1
XACKDEL s g 1-1 2-1 3-1
XACKDEL s g IDS 1 1-1
XACKDEL s g ids 1 1-1 acked
XACKDEL s g KEEPREF KEEPREF IDS 1 1-1
XACKDEL s g ACKED DELREF IDS 1 1-1
XACKDEL s g IDS 1 1-1 ACKED KEEPREF
XACKDEL s g IDS 1 1-1 IDS 1 2-1
XACKDEL s g IDS 3 1-1 2-1
XACKDEL s g IDS 1 1-1 2-1
XACKDEL s g IDS 2 1-1 1-1
XACKDEL s g IDS 2 1-1 nonsense
XACKDEL s g ACKED IDS 3 1-1 2-1 3-1
XACKDEL s g DELREF IDS 3 1-1 2-1 3-1
XACKDEL s h ACKED IDS 2 1-1 6-1
XACKDEL s h DELREF IDS 2 1-1 6-1
XACKDEL s h KEEPREF IDS 2 1-1 6-1
XACKDEL s g FOO IDS 1 1-1
XACKDEL s missing IDS 2 1-1 2-1
XACKDEL s missing IDS 1 nonsense
XACKDEL s missing IDS 0 1-1
XACKDEL missing g IDS 2 1-1 2-1
XACKDEL missing g FOO IDS 1 1-1
XACKDEL string g IDS 1 1-1
XACKDEL string g FOO IDS 0 1
XACKDEL s IDS IDS 1 1-1
XACKDEL s ACKED IDS 1 1-1
XADD s KEEPREF 9-9 k v
XADD s keepREF 9-9 k v
XADD s DELREF 9-9 k v
XADD s ACKED 9-9 k v
XADD s KEEPREF KEEPREF 9-9 k v
XADD s KEEPREF DELREF 9-9 k v
XADD s DELREF MAXLEN 2 ACKED 9-9 k v
XADD s MAXLEN 2 DELREF 9-9 k v
XADD s DELREF MAXLEN 2 9-9 k v
XADD s MAXLEN 2 ACKED 9-9 k v
XADD s MINID 4 ACKED 9-9 k v
XADD s ACKED NOMKSTREAM MINID 4 9-9 k v
XADD s ACKED
XADD s ACKED 9-9
XADD s ACKED 9-9 k
XADD new ACKED 9-9 k v
XADD new NOMKSTREAM DELREF 9-9 k v
XADD s LIMIT 5 ACKED 9-9 k v
XADD s MAXLEN 5 LIMIT 5 ACKED 9-9 k v
XADD s MAXLEN ~ 0 LIMIT 2 ACKED 9-9 k v
XADD s MAXLEN ACKED 9-9 k v
XADD string ACKED 9-9 k v
XTRIM s MAXLEN 2 KEEPREF
XTRIM s MAXLEN 2 DELREF
XTRIM s MAXLEN 2 ACKED
XTRIM s maxlen 2 acked
XTRIM s MAXLEN ~ 2 ACKED
XTRIM s MAXLEN ~ 2 DELREF
XTRIM s MAXLEN ~ 0 DELREF
XTRIM s MAXLEN 0 DELREF
XTRIM s MAXLEN 0 ACKED
XTRIM s MINID 4 ACKED
XTRIM s MINID 4 DELREF
XTRIM s MINID ~ 99 DELREF
XTRIM s MAXLEN = 2 KEEPREF
XTRIM s ACKED MAXLEN 2
XTRIM s ACKED
XTRIM s ACKED 2
XTRIM s ACKED MAXLEN
XTRIM s MAXLEN ACKED 2
XTRIM s MAXLEN 2 ACKED ACKED
XTRIM s MAXLEN 2 ACKED DELREF
XTRIM s MAXLEN 2 KEEPREF MINID 3
XTRIM s MAXLEN 2 LIMIT 5 ACKED
XTRIM s MAXLEN ~ 2 LIMIT 5 ACKED
XTRIM s MAXLEN ~ 2 ACKED LIMIT 5
XTRIM t MAXLEN 0 ACKED
XTRIM e MAXLEN 0 ACKED
XTRIM missing MAXLEN 2 ACKED
XTRIM missing MAXLEN 2 ACKED KEEPREF
XTRIM string MAXLEN 2 DELREF
XTRIM string MAXLEN 2 DELREF DELREF
XADD f IDMP
XADD f IDMP p
XADD f IDMP p m
XADD f IDMP p m *
XADD f IDMP p m * k
XADD f IDMP p m * k v k
XADD f IDMP p m * k v
XADD f idmp p m * k v
XADD f IdMp p new * k v
XADD f IDMP p new * k v
XADD f IDMP q m * k v
XADD f IDMP p m 9-9 k v
XADD f IDMP p m 100000000000000-0 k v
XADD f IDMP p new 100000000000000-* k v
XADD f IDMP p m IDMP p m * k v
XADD f IDMP p m IDMPAUTO p * k v
XADD f IDMPAUTO p IDMP p m * k v
XADD f IDMPAUTO p IDMPAUTO p * k v
XADD f IDMPAUTO
XADD f IDMPAUTO p
XADD f IDMPAUTO p *
XADD f IDMPAUTO p * k
XADD f IDMPAUTO p * k w
XADD f IDMPAUTO p * k x
XADD f idmpauto p * k w
XADD f IDMPAUTO p 9-9 k w
XADD f IDMPAUTO p 100000000000000-* k w
XADD f NOMKSTREAM IDMP p new * k v
XADD f IDMP p new NOMKSTREAM * k v
XADD new NOMKSTREAM IDMP p new * k v
XADD new NOMKSTREAM IDMP p new 5 k v
XADD f IDMP p new MAXLEN 1 * k v
XADD f MAXLEN 1 IDMP p new * k v
XADD f MAXLEN 1 IDMP p m * k v
XADD f IDMP p m MAXLEN 1 ACKED * k v
XADD f ACKED IDMP p new MAXLEN = 1 * k v
XADD f DELREF IDMPAUTO p MINID 99999999999999-2 * k x
XADD f IDMP p new LIMIT 1 * k v
XADD f IDMP p new MAXLEN -1 * k v
XADD f IDMP MAXLEN 1 * k v
XADD f IDMP p MAXLEN 1 * k v
XADD f IDMPAUTO MAXLEN 1 * k v
XADD f IDMP * * * k v
XADD f IDMPAUTO * * k v
XADD f IDMPAUTO IDMP * k v
XADD string IDMP p m * k v
XADD list IDMPAUTO p * k v
XADD string IDMP p m 5 k v
XCFGSET
XCFGSET f
XCFGSET missing
XCFGSET string
XCFGSET f IDMP-DURATION
XCFGSET f IDMP-MAXSIZE
XCFGSET f FOO
XCFGSET f FOO 5
XCFGSET f 5
XCFGSET f IDMP-DURATION 100
XCFGSET f IDMP-MAXSIZE 100
XCFGSET f IDMP-DURATION 100 IDMP-MAXSIZE 100
XCFGSET f idmp-duration 5 Idmp-MaxSize 6
XCFGSET f IDMP-DURATION 5 IDMP-DURATION 5
XCFGSET f IDMP-MAXSIZE 5 IDMP-MAXSIZE 6
XCFGSET f IDMP-DURATION 5 IDMP-MAXSIZE
XCFGSET f IDMP-DURATION 5 FOO 6
XCFGSET f IDMP-DURATION 5 IDMP-MAXSIZE 0
XCFGSET f IDMP-DURATION 0 IDMP-MAXSIZE 0
XCFGSET f IDMP-DURATION 5 IDMP-DURATION x
XCFGSET f IDMP-MAXSIZE 1
XCFGSET e IDMP-MAXSIZE 7
XCFGSET missing IDMP-DURATION 5
XCFGSET missing FOO
XCFGSET string IDMP-DURATION 5
XCFGSET string FOO
XCFGSET f IDMP-DURATION IDMP-MAXSIZE 5
XIDMPRECORD
XIDMPRECORD f p m
XIDMPRECORD f p m 99999999999999-1 x
XIDMPRECORD f p m 99999999999999-1
XIDMPRECORD f p m 99999999999999-0
XIDMPRECORD f p new 99999999999999-0
XIDMPRECORD f q m 99999999999999-0
XIDMPRECORD f p new 5-5
XIDMPRECORD f p m 5-5
XIDMPRECORD f p new nonsense
XIDMPRECORD f p new *
XIDMPRECORD s p new 5-1
XIDMPRECORD e p new 0-0
XIDMPRECORD missing p m 1-1
XIDMPRECORD missing p m nonsense
XIDMPRECORD string p m 1-1
XIDMPRECORD string p m nonsense
XREADGROUP GROUP g c CLAIM
XREADGROUP GROUP g c CLAIM 5
XREADGROUP GROUP g c CLAIM 5 STREAMS
XREADGROUP GROUP g c CLAIM STREAMS t >
XREADGROUP GROUP g c CLAIM 3600000 STREAMS t >
XREADGROUP GROUP g c claim 3600000 STREAMS t >
XREADGROUP GROUP g c CLAIM 3600000 CLAIM 3600001 STREAMS t >
XREADGROUP GROUP g c CLAIM x CLAIM 5 STREAMS t >
XREADGROUP GROUP g c CLAIM 5 CLAIM -5 STREAMS t >
XREADGROUP CLAIM 3600000 GROUP g c STREAMS t >
XREADGROUP CLAIM 3600000 STREAMS t > x
XREADGROUP GROUP g c CLAIM 3600000 NOACK STREAMS t >
XREADGROUP GROUP g c NOACK CLAIM 3600000 NOACK STREAMS t >
XREADGROUP GROUP g c CLAIM -1 STREAMS missing >
XREADGROUP GROUP g c CLAIM 5 STREAMS missing >
XREADGROUP GROUP missing c CLAIM 5 STREAMS t >
XREADGROUP GROUP g c CLAIM 5 STREAMS string >
XREADGROUP GROUP g c CLAIM 5 STREAMS t string > >
XREADGROUP GROUP g c CLAIM 5 STREAMS t missing > >
XREADGROUP GROUP g c CLAIM 5 STREAMS t s > nonsense
XREADGROUP GROUP g c CLAIM 5 STREAMS t $
XREADGROUP GROUP g c CLAIM 5 STREAMS t +
XREADGROUP GROUP g c CLAIM 5 STREAMS t t > >
XREADGROUP GROUP g c CLAIM 5 STREAMS t
XREADGROUP GROUP g c CLAIM 5 COUNT -1 STREAMS t >
XREADGROUP GROUP g c CLAIM 5 COUNT x STREAMS t >
XREADGROUP GROUP g c CLAIM 5 BLOCK -1 STREAMS t >
XREADGROUP GROUP g c CLAIM 5 BLOCK x STREAMS t >
XREADGROUP GROUP g c CLAIM 3600000 BLOCK 1 STREAMS e >
XREADGROUP GROUP CLAIM CLAIM CLAIM 5 STREAMS t >
XREADGROUP GROUP g CLAIM CLAIM 3600000 STREAMS t >
XREADGROUP GROUP g STREAMS CLAIM 3600000 STREAMS t >
XREADGROUP GROUP g c MAXCOUNT 5 STREAMS t >
XREADGROUP GROUP g c MAXSIZE 5 STREAMS t >
XREAD CLAIM 5 STREAMS s 0
XREAD CLAIM x STREAMS s 0
XREAD CLAIM
XREAD MAXCOUNT 5 STREAMS s 0
XREAD MAXSIZE 5 STREAMS s 0
XNACK s g FAIL IDS 1 1-1
XINFO STREAM f
XINFO STREAM f FULL
XINFO STREAM f FULL COUNT 1
XINFO STREAM s FULL COUNT x
COMMAND GETKEYS XDELEX s IDS 1 1-1
COMMAND GETKEYS XACKDEL s g IDS 1 1-1
COMMAND GETKEYS XCFGSET s IDMP-DURATION 5
COMMAND GETKEYS XIDMPRECORD s p m 1-1
COMMAND GETKEYS XREADGROUP GROUP g c CLAIM 5 STREAMS s t > >
COMMAND GETKEYS XADD s IDMP p m * k v
"""
TABLE = LINES.split("\n")[1:-1]

Pair = tuple[RawRedis, RawRedis]


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """The ports of Redis and penstock."""
    BY_LEVEL[LEVEL].need()
    with (
        running_redis(program=BY_LEVEL[LEVEL]) as theirs,
        running_penstock("--compat-version", LEVEL) as ours,
    ):
        yield theirs.port, ours.port


@pytest.fixture
def pair(ports: tuple[int, int]) -> Iterator[Pair]:
    with RawRedis(ports[0]) as theirs, RawRedis(ports[1]) as ours:
        yield theirs, ours
        for port in ports:  # other clients are still served
            with RawRedis(port) as other:
                assert other.ask([[b"PING"]]) == ["PONG"]


def words_of(line: str) -> Words:
    return line.encode().split()


def check(pair: Pair, commands: list[Words], around: tuple[str, ...] = ()) -> None:
    """Check that both give the same reply and then have the same data, unchanged if refused.

    `around`: MULTI and EXEC, for commands in a transaction.
    """
    setup, look = [words_of(line) for line in SETUP], [words_of(line) for line in LOOK]
    before: list[Any] = []
    for words in commands:
        if not before:
            before = [connection.ask([*setup, *look])[len(setup) :] for connection in pair][1]
        asked = [words_of(around[0]), words, words_of(around[1])] if around else [words]
        replies = [link.ask([*asked, *look]) for link in pair]
        (theirs, after_theirs), (ours, after) = (
            (_without_times(words, reply[: len(asked)]), _rows_without_idle(reply[len(asked) :]))
            for reply in replies
        )
        shown = [word[:80] for word in words[:20]]
        assert ours == theirs, shown
        assert after == after_theirs, shown
        if isinstance(ours[-1], Refusal) or (around and isinstance(ours[-1][0], Refusal)):
            assert after == _rows_without_idle(before), shown
        else:
            before = []


def _rows_without_idle(replies: list[Any]) -> list[Any]:
    """The replies to LOOK without the idle times of pending rows."""
    found = []
    for line, reply in zip(LOOK, replies, strict=True):
        is_rows = line.startswith("XPENDING") and line.endswith("100")
        found.append([[*row[:2], row[3]] for row in reply] if is_rows else reply)
    return found


def _without_times(words: Words, replies: Any) -> Any:
    """Replies without idle times of claims (a third of four items) and times of consumers and rows."""
    if words[0].upper() == b"XINFO":
        return _masked(replies)
    if words[0].upper() == b"XREADGROUP":
        return _without_claim_idle(replies)
    return replies


def _without_claim_idle(reply: Any) -> Any:
    if isinstance(reply, dict):
        return {key: _without_claim_idle(value) for key, value in reply.items()}
    if isinstance(reply, list):
        if len(reply) == 4 and isinstance(reply[2], int):
            return [*reply[:2], reply[2] >= 1800000, reply[3]]
        return [_without_claim_idle(item) for item in reply]
    return reply


def _masked(reply: Any) -> Any:
    """A reply in which moments (of this century, in ms) are all the same."""
    if isinstance(reply, dict):
        return {key: _masked(value) for key, value in reply.items()}
    if isinstance(reply, list):
        return [_masked(item) for item in reply]
    return "moment" if isinstance(reply, int) and reply > 1_500_000_000_000 else reply


def filled(line: str, texts: list[bytes]) -> list[Words]:
    return [[text if word == b"?" else word for word in words_of(line)] for text in texts]


@pytest.mark.parametrize("line", WITH_A_NUMBER.split("\n")[1:-1])
def test_numbers(pair: Pair, line: str) -> None:
    check(pair, filled(line, NUMBERS))


@pytest.mark.parametrize("line", WITH_AN_ID.split("\n")[1:-1])
def test_ids(pair: Pair, line: str) -> None:
    check(pair, filled(line, IDS))


def test_options_types_and_numbers_of_arguments(pair: Pair) -> None:
    check(pair, [words_of(line) for line in TABLE])


def test_the_same_in_resp3(pair: Pair) -> None:
    for connection in pair:
        connection.ask([words_of("HELLO 3")])
    check(pair, [words_of(line) for line in TABLE])


def test_the_same_in_a_transaction(pair: Pair) -> None:
    check(pair, [words_of(line) for line in TABLE], ("MULTI", "EXEC"))


@pytest.mark.parametrize("count", [1, 8, 9, 1000, 1_000_000 if SOAK else 100_000])
def test_any_number_of_ids(pair: Pair, count: int) -> None:
    ids = [b"%d-1" % (n + 1) for n in range(count)]
    number = b"%d" % count
    commands = [
        [b"XDELEX", b"s", b"IDS", number, *ids],
        [b"XDELEX", b"s", b"ACKED", b"IDS", number, *ids],
        [b"XACKDEL", b"s", b"g", b"DELREF", b"IDS", number, *ids],
        [b"XACKDEL", b"s", b"g", b"IDS", number, *ids, b"ACKED"],
        [b"XACKDEL", b"missing", b"g", b"IDS", number, *ids],
        [b"XACKDEL", b"s", b"g", b"IDS", number, *ids[1:], b"nonsense"],
        [b"XACKDEL", b"s", b"g", b"IDS", b"%d" % (count + 1), *ids],
        [b"XDELEX", b"s", b"IDS", number, *ids, b"9-9"],
    ]
    check(pair, commands)


NAMES = [b"", b"IDMP", b"*", b"\x00\xff", b"\r\n", b"n" * 65536, "é".encode()]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:10]))
def test_names_of_producers_and_messages(pair: Pair, name: bytes) -> None:
    add = [b"XADD", b"f"]
    star = [b"*", b"k", b"v"]
    commands = [
        [*add, b"IDMP", name, b"m", *star],
        [*add, b"IDMP", b"p", name, *star],
        [*add, b"IDMP", name, name, *star],
        [*add, b"IDMPAUTO", name, *star],
        [*add, b"IDMPAUTO", b"p", b"*", name, name],
        [*add, b"IDMP", name, b"", *star],
        [*add, b"IDMP", b"", name, b"5", b"k", b"v"],
        [b"XIDMPRECORD", b"f", name, b"m", b"99999999999999-0"],
        [b"XIDMPRECORD", b"f", b"p", name, b"99999999999999-0"],
        [b"XIDMPRECORD", b"f", name, name, b"nonsense"],
        [b"XIDMPRECORD", b"f", name, name, b"1-1"],
        [b"XIDMPRECORD", b"missing", name, b"m", b"1-1"],
        [b"XIDMPRECORD", b"string", b"p", name, b"1-1"],
        [b"XCFGSET", name, b"IDMP-DURATION", b"5"],
        [b"XCFGSET", b"f", name, b"5"],
        [b"XDELEX", name, b"IDS", b"1", b"1-1"],
        [b"XACKDEL", b"s", name, b"IDS", b"1", b"1-1"],
        [b"XREADGROUP", b"GROUP", b"g", name, b"CLAIM", b"3600000", b"STREAMS", b"t", b">"],
        [b"XREADGROUP", b"GROUP", name, b"a", b"CLAIM", b"3600000", b"STREAMS", b"t", b">"],
    ]
    check(pair, commands)
