"""Commands for the server itself give the same replies and errors as Redis, in both protocols.

Some lines are for 7.0 only. Newer versions of Redis have a module, start with the replication offset 1, and
their COMMAND GETKEYS takes a command of one word.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.campaign import levels
from tests.support.servers.connections import ServerBench
from tests.support.servers.programs import BY_LEVEL
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import RedisServer, running_redis

LINES = """
INFO nosuch
INFO modules
INFO cluster nosuch
INFO keyspace
COMMAND COUNT x
COMMAND NOSUCH
COMMAND INFO nosuch xgroup|nosuch
COMMAND DOCS nosuch
COMMAND GETKEYS NOSUCH a
COMMAND GETKEYS PING a
COMMAND GETKEYS XADD s
COMMAND GETKEYS XADD s * k v
COMMAND GETKEYS XGROUP CREATE s g 0
COMMAND GETKEYS XGROUP CREATE s g
COMMAND GETKEYS XGROUP NOSUCH s
COMMAND GETKEYS WATCH a b c
COMMAND GETKEYS XLEN
COMMAND GETKEYS LMPOP 2 a b LEFT
COMMAND GETKEYS LMPOP 0 a b LEFT
COMMAND GETKEYS LMPOP 4 a b LEFT
COMMAND GETKEYS LMPOP x a b LEFT
COMMAND GETKEYS BLMPOP x 2 a b LEFT
COMMAND GETKEYS BLMPOP 0 4 a b LEFT
COMMAND GETKEYS SSUBSCRIBE a b
COMMAND GETKEYS SPUBLISH a b
COMMAND GETKEYSANDFLAGS SSUBSCRIBE a b
COMMAND GETKEYS
COMMAND GETKEYSANDFLAGS XRANGE s - +
COMMAND GETKEYSANDFLAGS PING a
COMMAND LIST FILTERBY ACLCAT nosuch
COMMAND LIST FILTERBY ACLCAT @stream
COMMAND LIST FILTERBY PATTERN nosuch*
COMMAND LIST FILTERBY MODULE nosuch
COMMAND LIST FILTERBY
COMMAND LIST FILTERBY NOSUCH x
COMMAND LIST FILTERBY PATTERN x y
COMMAND LIST x
SLOWLOG
SLOWLOG NOSUCH
SLOWLOG GET -1
SLOWLOG GET -2
SLOWLOG GET x
SLOWLOG GET 1 2
SLOWLOG LEN x
SLOWLOG RESET
MEMORY NOSUCH
MEMORY USAGE nosuch
MEMORY USAGE nosuch SAMPLES
MEMORY USAGE nosuch SAMPLES -1
MEMORY USAGE nosuch SAMPLES x
MEMORY USAGE nosuch NOSUCH 1
MEMORY PURGE
DEBUG
DEBUG SLEEP 0
MONITOR x
TIME x
WAIT 0 0
WAIT -1 0
WAIT 1 1
WAIT 1 -1
WAIT x 1
WAIT 1 x
WAIT 1
ROLE
ROLE x
LASTSAVE x
FUNCTION FLUSH
FUNCTION FLUSH SYNC
FUNCTION FLUSH X
FUNCTION FLUSH SYNC X
FUNCTION
SCRIPT FLUSH
SCRIPT FLUSH async
SCRIPT FLUSH X
SCRIPT FLUSH SYNC X
LATENCY LATEST
LATENCY RESET
LATENCY RESET x y
LATENCY HISTORY x
LATENCY HISTORY
LATENCY HISTOGRAM nosuch
ACL WHOAMI
ACL NOSUCH
SHUTDOWN ABORT
SHUTDOWN NOSUCH
SHUTDOWN SAVE NOSAVE
SHUTDOWN ABORT NOW
MULTI
MONITOR
WAIT 1 0
SHUTDOWN ABORT
EXEC
MULTI
MONITOR
WAIT 1 0
ROLE
EXEC
MONITOR
XLEN s
""".strip().splitlines()


NOT_NEWER = {"INFO modules", "COMMAND GETKEYS XLEN", "ROLE"}


def replies_of(port: int, resp3: bool, lines: list[str]) -> list[Any]:
    name = b"slowlog-log-slower-than"
    with RawRedis(port) as client:
        # If the machine stalls for a moment, any command can become a slow one.
        client.ask([[b"CONFIG", b"SET", name, b"-1"], [b"SLOWLOG", b"RESET"]])
        if resp3:
            client.ask([[b"HELLO", b"3"]])
        found: list[Any] = client.ask([line.encode().split() for line in lines])
    return found


@pytest.mark.parametrize("resp3", [False, True], ids=["resp2", "resp3"])
@pytest.mark.parametrize("level", levels("8.0", "8.2", "8.6"))
def test_replies_are_those_of_redis(level: str, resp3: bool) -> None:
    BY_LEVEL[level].need()
    bench = ServerBench(level)
    client = bench.connect()
    client.session.output.resp3 = resp3
    lines = [line for line in LINES if level == "7.0" or line not in NOT_NEWER]
    with running_redis(program=BY_LEVEL[level]) as server:
        replies = replies_of(server.port, resp3, lines)
    for line, theirs in zip(lines, replies, strict=True):
        client.tell(line)
        ours = client.replies()
        if not ours:
            bench.advance(1)
            ours = client.replies()
        assert ours == [theirs], line


@pytest.mark.parametrize("container", ["COMMAND", "LATENCY", "MEMORY", "SLOWLOG"])
def test_help_has_the_syntax_lines_of_redis(redis_server: RedisServer, container: str) -> None:
    with RawRedis(redis_server.port) as client:
        [theirs] = client.ask([[container.encode(), b"HELP"]])
    ours = ServerBench("7.0").connect().reply(f"{container} HELP")
    assert ours[0] == theirs[0]
    assert {line for line in ours if line[0] != " "} <= set(theirs)
