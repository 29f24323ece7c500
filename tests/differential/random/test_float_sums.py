"""INCRBYFLOAT prints the same digits as Redis on x86, for all kinds of numbers."""

from __future__ import annotations

import platform
import random

import pytest

from tests.support.campaign import cases, seed
from tests.support.engine.engines import Bench
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import RedisServer

BATCH = 500
ODD = [
    *(b".5", b"5.", b"+1", b"-.0", b"1e", b"0x", b"0x.8p2", b"inf", b"-INF", b"infinity", b"nan"),
    *(b"nan(1)", b"", b" 1", b"1 ", b"1_0", b"1\x00", b"1e5000", b"-1e4932", b"1.2e4932"),
    *(b"1.1897314953572317650e4932", b"3e-4951", b"2e-4951", b"1e-4951", b"1e-99999999999999"),
    *(b"0e99999999999", b"1e" + b"0" * 40 + b"2", b"1" * 4900, b"0." + b"0" * 4900 + b"1"),
    *(b"1" * 5119, b"1" * 5120, b"0" * 5119, b"0." + b"1" * 5000, b"0xfffffffffffffffff.8"),
    *(b"0x1p16383", b"0x1p16384", b"0x1p-16445", b"0x1p-16446", b"0x1.8p-16446", b"0x0p99999"),
]


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="needs the long double of x86"
)
def test_sums_are_printed_as_by_redis(redis_server: RedisServer) -> None:
    start = seed()
    dice = random.Random(start)
    bench = Bench()
    with RawRedis(redis_server.port) as redis:
        for _ in range(max(1, cases(100_000) // BATCH)):
            pairs = [(random_number(dice), random_number(dice)) for _ in range(BATCH)]
            asked = [[[b"SET", b"n", one], [b"INCRBYFLOAT", b"n", two]] for one, two in pairs]
            replies = redis.ask([words for both in asked for words in both])
            for (set_, add), theirs in zip(asked, replies[1::2], strict=True):
                bench.run(*set_)
                assert bench.run(*add) == theirs, f"seed {start}: {set_[2]!r} + {add[2]!r}"


def random_number(dice: random.Random) -> bytes:
    kind = dice.randrange(8)
    scale = 10 ** dice.randrange(-20, 20)
    if kind == 0:
        return b"%d" % dice.randrange(-(10 ** dice.randrange(1, 25)), 10 ** dice.randrange(1, 25))
    if kind == 1:
        return repr(dice.uniform(-1e3, 1e3)).encode()
    if kind == 2:
        return b"%.*f" % (dice.randrange(25), dice.uniform(-1, 1) * scale)
    if kind == 3:
        return b"%de%d" % (dice.randrange(-(10**6), 10**6), dice.randrange(-30, 30))
    if kind == 4:
        return (dice.uniform(-1, 1) * 2.0 ** dice.randrange(-80, 80)).hex().encode()
    if kind == 5:
        return b"0.%018d" % dice.randrange(10**18)
    if kind == 6:
        return b"%d.5" % dice.randrange(2**62, 2**66)
    return dice.choice(ODD)
