"""Sends the same bytes to a real Redis and to our server over raw sockets. The same bytes must come back.

Values that always differ (ids, ports, sizes, ages) are masked, and two things that newer versions of Redis
show and penstock does not: their modules, and what CLIENT INFO counts for each client.

A pipeline with two failing AUTH is sent to 7.0 only: Redis 8 does not reply to the second one.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest

from tests.support.campaign import levels
from tests.support.servers.connections import encoded
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import BY_LEVEL
from tests.support.servers.redis_server import RedisServer, running_redis

REPLY_SECONDS_MAX = 20

VOLATILE = [
    (
        re.compile(
            rb"\b(id|fd|age|idle|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem)=\d+"
        ),
        rb"\1=?",
    ),
    (re.compile(rb"(l?addr)=127\.0\.0\.1:\d+"), rb"\1=?"),
    (re.compile(rb"\$2\r\nid\r\n:\d+"), rb"$2\r\nid\r\n:?"),
    (re.compile(rb"([$=])\d+(\r\n(?:txt:)?id=)"), rb"\1?\2"),
    (re.compile(rb" tot-net-in=\d+ tot-net-out=\d+ tot-cmds=\d+"), rb""),
    (
        re.compile(rb"(modules\r\n)\*1\r\n(?:%4|\*8)\r\n(?:(?:\$\d+\r\n[^\r]*|:1|\*0)\r\n){8}"),
        rb"\1*0\r\n",
    ),
]

LINES = [
    "PING|PING x|PING a b|ECHO x|ECHO|SELECT 3|SELECT 16|SELECT x|SELECT 0",
    "HELLO|HELLO 4|HELLO x|HELLO 2 FOO|HELLO 2 SETNAME|HELLO 2 SETNAME me|CLIENT GETNAME|HELLO 3|HELLO",
    "AUTH x|AUTH default x|AUTH foo x|AUTH a b c|HELLO 3 AUTH foo x|HELLO 3 AUTH default x",
    "SUBSCRIBE a b a|XLEN s|PING|PING x|PSUBSCRIBE p*|UNSUBSCRIBE z a b|PUNSUBSCRIBE|UNSUBSCRIBE|PING",
    "HELLO 3|SUBSCRIBE a|PSUBSCRIBE a*|XLEN s|PUBLISH a x|PUBSUB NUMSUB a b|PUBSUB NUMPAT|PUNSUBSCRIBE x",
    "HELLO 3|SUBSCRIBE c|MULTI|PUBLISH c 1|XLEN s|PUBLISH c 2|EXEC|RESET|PUBSUB CHANNELS",
    "MULTI|SUBSCRIBE a|PING|PUBLISH a x|EXEC|PING|RESET|PING",
    "PUBSUB|PUBSUB FOO|PUBSUB CHANNELS a b|PUBSUB NUMPAT x|PUBSUB NUMSUB|PUBSUB NUMSUB a b|PUBSUB CHANNELS",
    "SSUBSCRIBE a b a|XLEN s|PING|SPUBLISH a x|SUBSCRIBE c|PSUBSCRIBE c|SUNSUBSCRIBE z a b|PUNSUBSCRIBE",
    "SSUBSCRIBE a|SUBSCRIBE b|UNSUBSCRIBE|PING|SUNSUBSCRIBE|PING|SUNSUBSCRIBE|SUNSUBSCRIBE x",
    "HELLO 3|SSUBSCRIBE a|PSUBSCRIBE a*|SUBSCRIBE a|SPUBLISH a x|PUBLISH a y|CLIENT INFO|PUBSUB NUMSUB a",
    "HELLO 3|SSUBSCRIBE a b|PUBSUB SHARDCHANNELS b*|PUBSUB SHARDNUMSUB a c|PUBSUB CHANNELS|SUNSUBSCRIBE b",
    "HELLO 3|SSUBSCRIBE a|MULTI|SPUBLISH a 1|SSUBSCRIBE b|SUNSUBSCRIBE a|EXEC|RESET|PUBSUB SHARDCHANNELS",
    "SPUBLISH a|SPUBLISH a x|SSUBSCRIBE|MULTI|SSUBSCRIBE a|SPUBLISH a x|SUNSUBSCRIBE|EXEC|CLIENT INFO",
    "PUBSUB SHARDCHANNELS a b|PUBSUB SHARDNUMSUB|PUBSUB SHARDNUMSUB a b|PUBSUB SHARDCHANNELS",
    "CLIENT REPLY SKIP|SSUBSCRIBE a|PING|SUNSUBSCRIBE|PING",
    "CLIENT TRACKING|CLIENT TRACKING x|CLIENT TRACKING OFF|CLIENT TRACKING OFF OPTIN PREFIX x|CLIENT INFO",
    "CLIENT TRACKING OFF FOO|CLIENT TRACKING OFF PREFIX|CLIENT TRACKING x FOO|CLIENT TRACKING ON REDIRECT x",
    "CLIENT CACHING|CLIENT CACHING YES|CLIENT CACHING x|CLIENT CACHING YES NO|CLIENT TRACKINGINFO x",
    "CLIENT TRACKINGINFO|CLIENT GETREDIR|HELLO 3|CLIENT TRACKINGINFO|CLIENT GETREDIR",
    "CLIENT INFO|CLIENT SETNAME me|CLIENT INFO|CLIENT NO-EVICT on|CLIENT INFO|HELLO 3|CLIENT INFO",
    "MULTI|XLEN s|CLIENT INFO|RESET|CLIENT GETNAME|CLIENT GETREDIR|CLIENT|CLIENT FOO|CLIENT SETINFO a b",
    "CLIENT LIST TYPE pubsub|CLIENT LIST TYPE x|CLIENT LIST ID|CLIENT LIST ID x",
    "CLIENT KILL x|CLIENT KILL ID 0|CLIENT KILL ID x|CLIENT KILL TYPE x|CLIENT KILL USER x",
    "CLIENT KILL SKIPME x|CLIENT KILL FOO x|CLIENT KILL MAXAGE 99999|CLIENT KILL ADDR 1 x|CLIENT KILL ID 999",
    "CLIENT UNBLOCK 1 ERROR x|CLIENT UNBLOCK x y|CLIENT UNBLOCK x|CLIENT UNBLOCK 999999|CLIENT NO-EVICT x",
    "CLIENT PAUSE x|CLIENT PAUSE -1|CLIENT PAUSE 1 x|CLIENT PAUSE 1 WRITE x|CLIENT PAUSE 0|CLIENT UNPAUSE",
    "CLIENT REPLY x|CLIENT REPLY SKIP|PING|PING",
    "CLIENT REPLY OFF|PING|XLEN|CLIENT REPLY SKIP|CLIENT REPLY ON|PING",
    "HELLO 3|CLIENT REPLY OFF|SUBSCRIBE a|PUBLISH a x|XLEN s|UNSUBSCRIBE|CLIENT REPLY ON",
    "CLIENT REPLY SKIP|SUBSCRIBE a|PING|UNSUBSCRIBE|PING",
    "CLIENT REPLY OFF|RESET|CLIENT REPLY SKIP|RESET|PING",
    "CLIENT REPLY SKIP|XREAD BLOCK 10 STREAMS s $|PING|XREAD BLOCK 10 STREAMS s $|PING",
    "MULTI|FOO|XLEN s|EXEC|MULTI|XLEN|EXEC|MULTI|WATCH k|MULTI|DISCARD|EXEC|DISCARD|UNWATCH",
    "WATCH s|XADD s 1-1 k v|MULTI|XLEN s|EXEC|CLIENT INFO|MULTI|XADD s 1-1 k v|XADD s 1-2 k v|EXEC|XLEN s",
    "MULTI|EXEC x|EXEC|EXEC x|WATCH s|XADD s 9-9 k v|EXEC x|MULTI|EXEC|MULTI|SUBSCRIBE a|EXEC|EXEC|EXEC x",
    "QUIT|PING",
    "MULTI|QUIT|PING",
]

RAW = [
    b"PING\r\nPING x\n   \r\n\r\nPING 'a b'\r\nPING \"\\x41\\n\"\r\n",
    b"*0\r\n*-1\r\n*-5\r\nPING\r\n",
    *(
        b"PING\r\n" + bad
        for bad in (b"*x\r\n", b"*1\r\nfoo\r\n", b"*1\r\n$x\r\n", b"*1\r\n$-1\r\n")
    ),
    *(
        b"PING\r\n" + bad
        for bad in (b'"abc\r\n', b"'abc\r\n", b"*2147483648\r\n", b"*1\r\n\xff\r\n")
    ),
    *(b"PING\r\n" + bad for bad in (b"*1\r\n$600000000\r\n", b"*01\r\n", b"*1\r\n$04\r\nPING\r\n")),
    *(
        b"PING\r\n" + bad
        for bad in (b"*\r\n", b"*1\r\n$\r\n", b"*1\r\n\n\r\n", b"*+1\r\n$4\r\nPING\r\n")
    ),
]

ENDLESS = [b"x" * 70_000, b"*" + b"1" * 70_000, b"*1\r\n$" + b"1" * 70_000]


Both = tuple[RedisServer, int, str]


@pytest.fixture(scope="module", params=levels("8.0", "8.2", "8.6"))
def servers(request: pytest.FixtureRequest) -> Iterator[Both]:
    """A Redis, the port of a penstock process, and the level of both."""
    level: str = request.param
    BY_LEVEL[level].need()
    with (
        running_redis(program=BY_LEVEL[level]) as redis,
        running_penstock("--compat-version", level) as penstock,
    ):
        yield redis, penstock.port, level


@pytest.fixture
def both(servers: Both) -> Both:
    """The same, both without keys."""
    redis, port, _ = servers
    redis.reset()
    answers(port, encoded("FLUSHALL") + encoded("QUIT"))
    return servers


def answers(port: int, data: bytes) -> bytes:
    """All bytes received until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=REPLY_SECONDS_MAX) as client:
        client.sendall(data)
        heard = b""
        try:
            while piece := client.recv(1 << 16):
                heard += piece
        except ConnectionResetError:
            pass  # the server closed the connection while we were still sending
    for pattern, replacement in VOLATILE:
        heard = pattern.sub(replacement, heard)
    return heard


def script(line: str) -> bytes:
    commands = [encoded(*words.split()) for words in line.split("|")]
    return b"".join([*commands, encoded("QUIT")])


@pytest.mark.parametrize("line", LINES)
def test_a_session_reads_the_same(both: Both, line: str) -> None:
    redis, port, level = both
    if level != "7.0":
        line = line.replace("AUTH foo x|", "")
    data = script(line)
    assert answers(port, data) == answers(redis.port, data)


@pytest.mark.parametrize("data", RAW)
def test_raw_bytes_get_the_same_reply(both: Both, data: bytes) -> None:
    redis, port, _ = both
    data += b"\r\nQUIT\r\n"
    assert answers(port, data) == answers(redis.port, data)


@pytest.mark.parametrize("data", ENDLESS, ids=["line", "count", "size"])
def test_a_line_without_an_end_gets_the_same_error(both: Both, data: bytes) -> None:
    redis, port, level = both
    if level == "8.6" and b"$" in data:  # Redis 8.6 reads on without a limit
        assert answers(port, data) == b"-ERR Protocol error: too big bulk count string\r\n"
    else:
        assert answers(port, data) == answers(redis.port, data)
