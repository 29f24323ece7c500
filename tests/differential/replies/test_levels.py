"""Fixed sequences of commands whose replies differ between versions of Redis, beside each live version.

The random campaigns found most of them; here they run with every `make test`.
"""

from __future__ import annotations

import pytest

from tests.support.engine.engines import Bench
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import BY_LEVEL
from tests.support.servers.raw_redis import RawRedis

FIVE = [f"XADD s {n}-0 k v" for n in range(1, 6)]
READ_ONE = "XREADGROUP GROUP g a COUNT 1 STREAMS s >"
SHOW = "XINFO GROUPS s"
MIN64 = -(2**63)

SEQUENCES = {
    "a trim overtakes a group": [
        *(*FIVE, "XGROUP CREATE s g 0", READ_ONE, "XTRIM s MAXLEN 1", SHOW, READ_ONE, SHOW),
        *("XADD s 6-0 k v", SHOW, READ_ONE, SHOW),
    ],
    "a trim reaches a group": [
        *(*FIVE, "XGROUP CREATE s g 2-0 ENTRIESREAD 2", "XTRIM s MINID 2", READ_ONE, SHOW),
        *("XTRIM s MINID 3", READ_ONE, SHOW, "XTRIM s MAXLEN 0", SHOW),
    ],
    "deletions before the first entry": [
        *(*FIVE, "XGROUP CREATE s g 0-5 ENTRIESREAD 1", "XDEL s 1-0", SHOW, READ_ONE, SHOW),
        *("XDEL s 2-0 3-0", SHOW, READ_ONE, SHOW, READ_ONE, SHOW),
    ],
    "deletions after the position": [
        *(*FIVE, "XGROUP CREATE s g 0", READ_ONE, "XDEL s 3-0", SHOW, READ_ONE, SHOW, READ_ONE),
        *(SHOW, READ_ONE, SHOW, "XGROUP SETID s g 1-0", SHOW, "XGROUP SETID s g $", SHOW),
    ],
    "a deletion between the position and the next entry": [
        *("XADD s 1-0 k v", "XADD s 2-0 k v", "XADD s 3-0 k v", "XGROUP CREATE s g 1-0"),
        *("XGROUP SETID s g 1-0 ENTRIESREAD 2", "XDEL s 2-0", "XSETID s 9-0", READ_ONE, SHOW),
    ],
    "more entries read than added": [
        *(*FIVE, "XGROUP CREATE s g 0 ENTRIESREAD 100", SHOW, READ_ONE, SHOW),
        *("XGROUP SETID s g 2-0 ENTRIESREAD 6", SHOW, READ_ONE, SHOW),
        *("XGROUP SETID s g 2-0 ENTRIESREAD 5", SHOW, READ_ONE, SHOW),
        "XGROUP CREATE t g 0 MKSTREAM ENTRIESREAD 100",
        "XINFO GROUPS t",
    ],
    "fewer entries added than read": [
        *(*FIVE, "XGROUP CREATE s g 0", "XREADGROUP GROUP g a STREAMS s >", "XTRIM s MAXLEN 1"),
        *("XSETID s 5-0 ENTRIESADDED 1", SHOW, "XADD s 6-0 k v", READ_ONE, SHOW),
        *("XGROUP CREATE s h 5-0 ENTRIESREAD 9", SHOW),
    ],
    "the smallest count of LREM": [
        *("RPUSH l a b a", f"LREM l {MIN64} a", f"LREM l {MIN64 + 1} a", "LRANGE l 0 -1"),
    ],
}


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("level", BY_LEVEL)
def test_the_replies_are_those_of_that_version(port: int, level: str, name: str) -> None:
    bench = Bench(level)
    with RawRedis(port) as redis:
        for line in SEQUENCES[name]:
            [theirs] = redis.ask([line.encode().split()])
            assert bench.ask(line) == theirs, line


@pytest.mark.parametrize("level", ["7.0", "8.0", "8.2", "8.6"])
def test_expired_keys_that_a_scan_leaves_out(port: int, level: str) -> None:
    """8.2 removes them, the versions before and after do not. DBSIZE counts those that are still there."""
    lines = [
        "DEBUG SET-ACTIVE-EXPIRE 0",
        "FLUSHALL",
        "SET t 1 PXAT 2147483647",
        "SCAN 0 MATCH key:*",
        "DBSIZE",
        "SCAN 0",
        "DBSIZE",
    ]
    options = ("--compat-version", level, "--enable-debug-command", "yes")
    with running_penstock(*options) as ours:
        told = []
        for one in (port, ours.port):
            with RawRedis(one) as client:
                told.append(client.ask([line.encode().split() for line in lines]))
    assert told[0] == told[1]
