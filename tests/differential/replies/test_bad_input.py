"""Bad ids, numbers, options, names and frames: our server replies as Redis does, and no data change.

Each line of the tables goes to both servers over a raw socket. The replies must be equal, and so must the
data afterwards. A refused command must leave the data as they were and the connection open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import NO_REDIS
from tests.support.random.stream_commands import Words
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.raw_redis import RawRedis, Refusal
from tests.support.servers.redis_server import redis_program_or_none, running_redis

MIB = 1 << 20
TOP = b"18446744073709551615"

# The pending entries are idle for half an hour: no IDLE in the tables is close to that.
SETUP = [
    *("FLUSHALL", "XADD s 1-1 k v", "XADD s 2-1 k v k w", "XADD s 3-1 k v", "XGROUP CREATE s g 0"),
    *(
        "XREADGROUP GROUP g a COUNT 2 STREAMS s >",
        "XCLAIM s g a 0 1-1 2-1 IDLE 1800000 RETRYCOUNT 1",
    ),
    *("XADD t 1-1 k v", "XGROUP CREATE t g 0"),
    *("SET string x", "RPUSH list a b c", "XADD u 5-5 k v", "XDEL u 5-5"),
]
LOOK = [
    *("XRANGE s - +", "XRANGE t - +", "XINFO GROUPS s", "XINFO GROUPS t", "XPENDING s g", "DBSIZE"),
    *(
        "GET string",
        "LRANGE list 0 -1",
        "XINFO STREAM s",
        "XINFO STREAM u",
        "PTTL s",
        "PTTL string",
    ),
]

IDS = [
    *(b"-", b"+", b"*", b"$", b">", b"", b"*-1", b"1-", b"-1", b"1-2-3", b" 1-1", b"01-1", b"1-*", b"0-0"),
    *(b"(", b"((1-1", b"(1-1", b"(0-0", b"(" + TOP + b"-" + TOP, TOP + b"-" + TOP, TOP, b"1-" + TOP),
    *(b"18446744073709551616", b"1-18446744073709551616", b"1" * 127, b"1" * 128, b"0" * 200 + b"1"),
    *(b"1-1\x00", b"\x00", b"1\x00-1", "１-１".encode(), "²".encode(), b"1-1 ", b"1 -1", b"0x1-1"),
    *(b"1.0", b"1e3", b"abc", b"1-a", b"\xff", b"\r\n", b"9-9", b"2-1"),
]  # fmt: skip
WITH_AN_ID = """
XADD s ? k v
XADD new ? k v
XADD s MINID ? 9-9 k v
XADD s MINID ~ ? 9-9 k v
XTRIM s MINID ?
XTRIM s MINID = ? LIMIT 5
XRANGE s ? +
XRANGE s - ?
XRANGE s ? ? COUNT 1
XREVRANGE s ? -
XREVRANGE s + ?
XREAD STREAMS s ?
XREAD STREAMS s t ? 0
XREAD STREAMS missing ?
XREADGROUP GROUP g b STREAMS s ?
XREADGROUP GROUP g b STREAMS s t > ?
XDEL s 9-9 ?
XDEL missing ?
XACK s g 9-9 ?
XACK missing g ?
XACK s missing ?
XCLAIM s g b 0 ?
XCLAIM s g b 0 9-9 ?
XCLAIM s g b 0 9-9 LASTID ?
XAUTOCLAIM s g b 3600000 ?
XPENDING s g ? + 10
XPENDING s g - ? 10
XGROUP CREATE s new ?
XGROUP CREATE missing new ?
XGROUP SETID s g ?
XGROUP SETID s missing ?
XSETID s ?
XSETID missing ?
XSETID s 9-9 MAXDELETEDID ?
"""

NUMBERS = [
    *(b"-1", b"0", b"-0", b"", b"+5", b"007", b"5", b" 5", b"5 ", b"1e3", b"1.0", b"0x10", b"abc", b"-"),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"-9223372036854775809"),
    *(TOP, b"99999999999999999999999", "５".encode(), b"1_000", b"1,000", b"inf", b"nan", b"--1"),
    *(b"2147483648", b"5\x00"),
]  # fmt: skip
WITH_A_NUMBER = """
XADD s MAXLEN ? 9-9 k v
XADD s MAXLEN ~ ? 9-9 k v
XADD s MAXLEN ~ 5 LIMIT ? 9-9 k v
XTRIM s MAXLEN ?
XTRIM s MAXLEN ~ ?
XTRIM s MAXLEN ~ 0 LIMIT ?
XTRIM missing MAXLEN ?
XRANGE s - + COUNT ?
XRANGE missing - + COUNT ?
XREVRANGE s + - COUNT ?
XREAD COUNT ? STREAMS s 0
XREAD BLOCK ? STREAMS s 0
XREADGROUP GROUP g b COUNT ? STREAMS s >
XREADGROUP GROUP g b BLOCK ? STREAMS s >
XPENDING s g - + ?
XPENDING s g IDLE ? - + 10
XPENDING missing g - + ?
XCLAIM s g b ? 9-9
XCLAIM s g b 0 9-9 IDLE ?
XCLAIM s g b 0 9-9 TIME ?
XCLAIM s g b 0 9-9 RETRYCOUNT ?
XCLAIM missing g b ? 9-9
XAUTOCLAIM s g b ? 9-9
XAUTOCLAIM s g b 0 9-9 COUNT ?
XAUTOCLAIM missing g b ? 9-9
XGROUP CREATE s new 0 ENTRIESREAD ?
XGROUP SETID s g 1 ENTRIESREAD ?
XSETID s 9-9 ENTRIESADDED ? MAXDELETEDID 0-0
XINFO STREAM t FULL COUNT ?
LPOP list ?
LRANGE list ? -1
LINDEX list ?
LREM list ? z
LTRIM missing ? ?
LSET list ? z
LSET missing ? z
LPOS list a COUNT ?
LPOS list a MAXLEN ?
LPOS missing a COUNT ? MAXLEN ?
LMPOP ? list LEFT
LMPOP 1 list LEFT COUNT ?
LMPOP 1 missing RIGHT COUNT ?
BLMPOP 1 ? list LEFT
BLMPOP 1 1 list LEFT COUNT ?
GETRANGE string ? -1
INCRBY missing ?
DECRBY string ?
SETEX missing ? x
MOVE missing ?
"""

LINES = """
XADD
XADD s
XADD s *
XADD s * k
XADD s * k v k
XADD s 9-9 k v k
XADD s NOMKSTREAM
XADD s NOMKSTREAM NOMKSTREAM 9-9 k v
XADD s nomkStream maxlen = 2 9-9 k v
XADD s MAXLEN
XADD s MAXLEN ~
XADD s MAXLEN ~ 5
XADD s MAXLEN 5 LIMIT 5 9-9 k v
XADD s MAXLEN = 5 LIMIT 5 9-9 k v
XADD s LIMIT 5 9-9 k v
XADD s MAXLEN 5 MINID 1 9-9 k v
XADD s MINID 1 MAXLEN 5 9-9 k v
XADD s MAXLEN 5 MAXLEN 2 9-9 k v
XADD s MAXLEN ~ 5 LIMIT 1 LIMIT 2 9-9 k v
XADD s KEEPREF 9-9 k v
XADD s IDMPAUTO p * k v
XADD string * k v
XADD list 0-0 k v
XADD s k v 9-9 k v
XTRIM s
XTRIM s MAXLEN
XTRIM s 5
XTRIM s MAXLEN 5 6
XTRIM s MAXLEN 5 MINID 1
XTRIM s LIMIT 5
XTRIM s MAXLEN 5 LIMIT 5
XTRIM s ~ 5
XTRIM s NOMKSTREAM MAXLEN 5
XTRIM s MAXLEN ~ 5 ACKED
XTRIM string MAXLEN 5
XRANGE s
XRANGE s -
XRANGE s - + COUNT
XRANGE s - + COUNT 1 COUNT 2
XRANGE s - + LIMIT 1
XRANGE string - +
XRANGE s + -
XREVRANGE s - +
XREAD
XREAD STREAMS
XREAD STREAMS s
XREAD STREAMS s t 0
XREAD STREAMS s s 0 1
XREAD COUNT
XREAD COUNT STREAMS s 0
XREAD COUNT 1 COUNT 2 STREAMS s 0
XREAD STREAMS s 0 COUNT 1
XREAD streams s 0
XREAD GROUP g a STREAMS s 0
XREAD NOACK STREAMS s 0
XREAD STREAMS string 0
XREAD STREAMS s string 0 0
XREAD STREAMS string s 0 0
XREAD STREAMS s >
XREAD STREAMS s +
XREAD MAXCOUNT 5 STREAMS s 0
XREADGROUP GROUP g
XREADGROUP GROUP g a STREAMS s
XREADGROUP GROUP g a STREAMS s t >
XREADGROUP COUNT 1 STREAMS s > x
XREADGROUP GROUP g a GROUP g b STREAMS t >
XREADGROUP STREAMS s > GROUP g a
XREADGROUP GROUP g STREAMS STREAMS s 0
XREADGROUP GROUP GROUP a STREAMS s >
XREADGROUP GROUP g a STREAMS s $
XREADGROUP GROUP g a STREAMS s *
XREADGROUP GROUP missing a STREAMS s >
XREADGROUP GROUP g a STREAMS missing >
XREADGROUP GROUP g a STREAMS string >
XREADGROUP GROUP g a STREAMS s string > >
XREADGROUP GROUP g a NOACK NOACK STREAMS t >
XREADGROUP GROUP g a CLAIM 5 STREAMS t >
XDEL s
XDEL string 1-1
XDEL s 1-1 1-1
XACK s g
XACK s
XACK string g 1-1
XACK s string 1-1
XCLAIM s g b 0
XCLAIM s g b 0 9-9 FOO
XCLAIM s g b 0 9-9 IDLE
XCLAIM s g b 0 IDLE 5
XCLAIM s g b 0 FORCE JUSTID
XCLAIM s g b 0 9-9 JUSTID 8-8
XCLAIM s missing b 0 9-9
XCLAIM missing g b 0 9-9
XCLAIM string g b 0 9-9
XCLAIM s g b 0 9-9 force Force JUSTID justid
XAUTOCLAIM s g b 0
XAUTOCLAIM s g b 0 0 COUNT
XAUTOCLAIM s g b 0 0 FOO
XAUTOCLAIM s missing b 0 0
XAUTOCLAIM string g b 0 0
XPENDING s
XPENDING s missing
XPENDING missing g
XPENDING string g
XPENDING s g -
XPENDING s g - +
XPENDING s g - + 1 a b
XPENDING s g IDLE
XPENDING s g IDLE 0
XPENDING s g - + 1 IDLE 0
XGROUP
XGROUP FOO
XGROUP FOO s g
XGROUP CREATE s
XGROUP CREATE s g 0
XGROUP CREATE s new 0 FOO
XGROUP CREATE s new 0 MKSTREAM MKSTREAM
XGROUP CREATE s new 0 ENTRIESREAD
XGROUP CREATE missing new 0
XGROUP CREATE string new 0
XGROUP CREATE string new 0 MKSTREAM
XGROUP SETID s g
XGROUP SETID s g 0 MKSTREAM
XGROUP SETID missing g 0
XGROUP DESTROY s
XGROUP DESTROY s missing
XGROUP DESTROY missing g
XGROUP DESTROY string g
XGROUP CREATECONSUMER s missing c
XGROUP CREATECONSUMER s g
XGROUP DELCONSUMER s missing c
XGROUP DELCONSUMER missing g c
XGROUP HELP x
XINFO
XINFO FOO
XINFO FOO s
XINFO STREAM
XINFO STREAM missing
XINFO STREAM string
XINFO STREAM s FOO
XINFO STREAM s FULL COUNT
XINFO STREAM s FULL FOO 1
XINFO STREAM s FULL COUNT 1 2
XINFO GROUPS
XINFO GROUPS missing
XINFO GROUPS string
XINFO CONSUMERS s
XINFO CONSUMERS s missing
XINFO CONSUMERS missing g
XINFO CONSUMERS string g
XSETID s
XSETID s 9-9 9-9
XSETID s 9-9 ENTRIESADDED
XSETID s 9-9 ENTRIESADDED 1 MAXDELETEDID 10-0
XSETID s 9-9 MAXDELETEDID 1-0
XSETID s 1-1
XSETID string 9-9
XLEN
XLEN s t
XLEN string
XFOO s
xlen STRING
LPUSH s x
LPUSH string x
LPOP s
LMOVE list s LEFT RIGHT
LMOVE s list LEFT RIGHT
LMOVE list list LEFT UP
BLPOP s 1
BLPOP list
BLPOP list x
BLPOP list -1
LSET
LSET list 0
LSET list 0 a b
LSET list 3 z
LSET list -4 z
LSET missing x z
LSET string x z
LSET s 0 z
LINSERT list BEFORE a
LINSERT list BEFORE a z z
LINSERT list BESIDE a z
LINSERT list AFTER missing z
LINSERT missing AFTER a z
LINSERT missing BESIDE a z
LINSERT string AFTER a z
LINSERT string BESIDE a z
LINSERT s BEFORE a z
LPOS list
LPOS list a RANK
LPOS list a RANK 0
LPOS list a RANK x
LPOS list a RANK 2
LPOS list a RANK -1
LPOS list a RANK 9223372036854775807
LPOS list a RANK -9223372036854775807
LPOS list a RANK 9223372036854775808
LPOS list a RANK 1 RANK 0
LPOS list a RANK 0 COUNT -1
LPOS list a COUNT -1 RANK 0
LPOS list a COUNT 1 COUNT 0
LPOS list a COUNT
LPOS list a MAXLEN 1 FOO
LPOS list a FOO 1
LPOS string a
LPOS string a RANK 0
LPOS missing a
LPOS missing a COUNT 0
LPOS s a COUNT 0
LMPOP
LMPOP 1
LMPOP 1 list
LMPOP 1 list UP
LMPOP 2 list LEFT
LMPOP 1 list list LEFT
LMPOP 1 list LEFT COUNT
LMPOP 1 list LEFT COUNT 1 COUNT 1
LMPOP 1 list LEFT COUNT 1 x
LMPOP 1 list LEFT FOO 1
LMPOP 0 list UP
LMPOP 1 string LEFT COUNT 0
LMPOP 1 string LEFT
LMPOP 2 missing string LEFT
LMPOP 3 missing string list LEFT
LMPOP 2 list string LEFT
LMPOP 2 missing missing RIGHT
BLMPOP 1 1 list
BLMPOP x 1 list LEFT
BLMPOP -1 1 list LEFT
BLMPOP x 0 list LEFT
BLMPOP x 1 list UP
BLMPOP x 1 list LEFT COUNT 0
BLMPOP 1 2 list LEFT
BLMPOP 1 1 list LEFT COUNT 1 COUNT 1
BLMPOP 1 2 missing string RIGHT
BLMPOP 0.01 1 missing RIGHT
INCR s
INCR string
GET list
GET s
APPEND s x
SET string x EX
SET string x EX 0
SET string x EX 5 PX 5
SET string x NX XX
SET string x KEEPTTL EX 5
GETEX string EX
MSET a
MSET a 1 b
RENAME missing s
EXPIRE s x
EXPIRE s 5 NX XX
EXPIRE s 5 GT LT
SELECT
SELECT 99
SELECT -1
SWAPDB 0 99
COPY s s
COPY s new DB 99
OBJECT ENCODING
OBJECT FOO s
SCAN x
SCAN 0 COUNT 0
SCAN 0 MATCH
HELLO 1
HELLO 4
HELLO x
HELLO 3 AUTH
HELLO 3 FOO
HELLO 9223372036854775808
AUTH
AUTH a b c
AUTH wrong
RESET x
"""

NAMES = [b"", b"STREAMS", b"GROUP", b">", b"\x00\xff", b"\r\n", b"n" * MIB]

Pair = tuple[RawRedis, RawRedis]


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """The ports of Redis and penstock."""
    if redis_program_or_none() is None:
        pytest.skip(NO_REDIS)
    with running_redis() as theirs, running_penstock("--compat-version", "7.0") as ours:
        yield theirs.port, ours.port


@pytest.fixture
def pair(ports: tuple[int, int]) -> Iterator[Pair]:
    with RawRedis(ports[0]) as theirs, RawRedis(ports[1]) as ours:
        yield theirs, ours


def words_of(line: str) -> Words:
    return line.encode().split()


def check(pair: Pair, commands: list[Words]) -> None:
    """Check that both servers give the same reply and then have the same data, unchanged if refused."""
    setup, look = [words_of(line) for line in SETUP], [words_of(line) for line in LOOK]
    before: list[Any] = []
    for words in commands:
        if not before:
            before = [connection.ask([*setup, *look])[len(setup) :] for connection in pair][1]
        (theirs, *after_theirs), (ours, *after) = (link.ask([words, *look]) for link in pair)
        shown = [word[:80] for word in words[:20]]
        assert _without_idle(words, ours) == _without_idle(words, theirs), shown
        assert after == after_theirs, shown
        if isinstance(ours, Refusal):
            assert after == before, shown
        else:
            before = []


def _without_idle(words: Words, reply: Any) -> Any:
    if words[0] == b"XPENDING" and isinstance(reply, list) and len(words) > 3:
        return [[*row[:2], *row[3:]] for row in reply]
    return reply


def filled(lines: str, texts: list[bytes]) -> Iterator[Words]:
    for line in lines.split("\n")[1:-1]:
        for text in texts:
            words = [text if word == b"?" else word for word in words_of(line)]
            if words[0] != b"XADD" or b"*" not in words:
                yield words  # an id made from the clock would differ


@pytest.mark.parametrize("line", WITH_AN_ID.split("\n")[1:-1])
def test_ids(pair: Pair, line: str) -> None:
    check(pair, list(filled(f"\n{line}\n", IDS)))


@pytest.mark.parametrize("line", WITH_A_NUMBER.split("\n")[1:-1])
def test_numbers(pair: Pair, line: str) -> None:
    check(pair, list(filled(f"\n{line}\n", NUMBERS)))


def test_options_types_and_numbers_of_arguments(pair: Pair) -> None:
    check(pair, [words_of(line) for line in LINES.split("\n")[1:-1]])


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:10]))
def test_names_and_fields(pair: Pair, name: bytes) -> None:
    commands = [
        [b"XADD", name, b"9-9", b"k", b"v"],
        [b"XADD", b"s", b"9-9", name, name],
        [b"XADD", b"s", b"9-9", name],
        [b"XADD", b"s", b"9-9", name, b"1", name, b"2"],
        [b"XGROUP", b"CREATE", b"s", name, b"0"],
        [b"XGROUP", b"CREATECONSUMER", b"s", b"g", name],
        [b"XREADGROUP", b"GROUP", b"g", name, b"STREAMS", b"s", b">"],
        [b"XREADGROUP", b"GROUP", name, b"a", b"STREAMS", b"s", b">"],
        [b"XPENDING", b"s", name],
        [b"XPENDING", b"s", b"g", b"-", b"+", b"1", name],
        [b"XCLAIM", b"s", b"g", name, b"0", b"1-1"],
        [b"XACK", b"s", name, b"1-1"],
        [b"XREAD", b"STREAMS", name, name],
        [b"SET", name, name],
        [b"RPUSH", b"list", name],
        [name, name],
        [b"XGROUP", name, b"s", b"g"],
        [b"ECHO", name],
    ]
    check(pair, commands)


def test_an_entry_with_very_many_fields(pair: Pair) -> None:
    fields = [b"%d" % (n % 1000) for n in range(100_000)]
    check(pair, [[b"XADD", b"s", b"9-9", *fields], [b"XADD", b"s", b"9-9", *fields, b"odd"]])


def test_refusals_in_a_transaction_and_in_a_pipeline_and_after_reset(pair: Pair) -> None:
    lines = ["RESET", "XADD s 0-0 k v", "MULTI", "XADD s 0-0 k v", "XLEN string", "XLEN s", "EXEC"]
    lines += ["MULTI", "XADD s", "XLEN s", "EXEC", "XLEN s", "MULTI", "XFOO", "DISCARD", "RESET"]
    lines += ["XADD s 1-0 k v", "XREAD BLOCK 1 STREAMS s $", "XRANGE s + - COUNT x", "PING"]
    theirs, ours = (
        connection.ask([words_of(line) for line in SETUP + lines]) for connection in pair
    )
    assert ours == theirs


def test_guessing_passwords_fails_as_in_redis(ports: tuple[int, int]) -> None:
    guesses = [[b"AUTH", b"guess %d" % n] for n in range(500)]
    guesses += [[b"AUTH", b"default", b"secret\0"], [b"AUTH", b""], [b"GET", b"string"], [b"XFOO"]]
    guesses += [[b"HELLO", b"3", b"AUTH", b"default", b"no"], [b"HELLO", b"3"], [b"EXEC"]]
    found: list[list[Any]] = []
    for port in ports:
        with RawRedis(port) as owner:
            owner.ask([words_of("CONFIG SET requirepass secret"), words_of("SET string x")])
            with RawRedis(port) as stranger:
                # One at a time: Redis disconnects unauthenticated clients with a thousand unread bytes.
                found.append([stranger.ask([words])[0] for words in guesses])
            found[-1] += owner.ask([[b"GET", b"string"], words_of("CONFIG SET requirepass")])
            owner.ask([[b"CONFIG", b"SET", b"requirepass", b""]])
    assert found[1] == found[0]
