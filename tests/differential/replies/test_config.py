"""CONFIG gives the same replies and errors as a real Redis, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.programs import BY_LEVEL
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import RedisServer

GET, SET = "CONFIG GET", "CONFIG SET"

COMMANDS = [
    "CONFIG",
    "CONFIG NOPE",
    "CONFIG GET",
    "CONFIG GET timeout",
    "CONFIG GET TIMEOUT timeout time*",
    "CONFIG GET list-max-ziplist-size",
    "CONFIG GET no-such-name",
    "CONFIG GET notify-keyspace-events slowlog-* save",
    "CONFIG SET timeout",
    "CONFIG SET timeout 1 hz",
    "CONFIG SET timeout 1 timeout 2",
    "CONFIG SET timeout 1 nope 2",
    "CONFIG GET timeout",
    "CONFIG SET NoPe 1",
    "CONFIG SET timeout 17 slowlog-max-len 12",
    "CONFIG GET timeout slowlog-max-len",
    "CONFIG SET timeout 18 slowlog-max-len x",
    "CONFIG GET timeout",
    "CONFIG SET timeout -1",
    "CONFIG SET timeout abc",
    "CONFIG SET timeout ''",
    "CONFIG SET timeout 2147483648",
    "CONFIG SET timeout +5",
    "CONFIG SET maxmemory abc",
    "CONFIG SET maxmemory 10q",
    "CONFIG SET maxmemory 5%",
    "CONFIG SET maxmemory -1",
    "CONFIG SET maxmemory 1.5gb",
    "CONFIG SET maxmemory 500GB",
    "CONFIG GET maxmemory",
    "CONFIG SET maxmemory 700g",
    "CONFIG GET maxmemory",
    "CONFIG SET maxmemory 99999999999999999999",
    "CONFIG SET maxmemory-policy foo",
    "CONFIG SET appendonly maybe",
    "CONFIG SET appendfsync foo",
    "CONFIG SET loglevel VERBOSE",
    "CONFIG GET loglevel",
    "CONFIG SET protected-mode foo",
    "CONFIG SET latency-tracking x",
    "CONFIG SET slowlog-log-slower-than x",
    "CONFIG SET slowlog-log-slower-than -5",
    "CONFIG SET slowlog-max-len -1",
    "CONFIG SET slowlog-max-len 1kb",
    "CONFIG SET proto-max-bulk-len 1",
    "CONFIG SET proto-max-bulk-len 99999999999999999999999",
    "CONFIG SET client-query-buffer-limit 1",
    "CONFIG SET maxclients 0",
    "CONFIG SET maxclients abc",
    "CONFIG SET tcp-keepalive -1",
    "CONFIG SET stream-node-max-bytes -1",
    "CONFIG SET stream-node-max-bytes 1kb",
    "CONFIG GET stream-node-max-bytes",
    "CONFIG SET stream-node-max-entries x",
    "CONFIG SET list-max-ziplist-size abc",
    "CONFIG SET list-max-ziplist-size 5",
    "CONFIG GET list-max-listpack-size",
    "CONFIG SET save abc",
    "CONFIG SET save 900",
    "CONFIG SET save '900 -1'",
    "CONFIG SET save '100 5 200 6'",
    "CONFIG GET save",
    "CONFIG SET save ''",
    "CONFIG GET save",
    "CONFIG SET notify-keyspace-events Q",
    "CONFIG SET notify-keyspace-events KEA",
    "CONFIG GET notify-keyspace-events",
    "CONFIG SET client-output-buffer-limit foo",
    "CONFIG SET client-output-buffer-limit ''",
    "CONFIG SET client-output-buffer-limit 'foo 1 2 3'",
    "CONFIG SET client-output-buffer-limit 'normal a 2 3'",
    "CONFIG SET client-output-buffer-limit 'normal 1mb 2 x'",
    "CONFIG SET client-output-buffer-limit 'normal 1gb 2 3 replica 5 6 7'",
    "CONFIG GET client-output-buffer-limit",
    "CONFIG SET latency-tracking-info-percentiles 101",
    "CONFIG SET latency-tracking-info-percentiles abc",
    "CONFIG SET latency-tracking-info-percentiles '50.0 99.999 100'",
    "CONFIG GET latency-tracking-info-percentiles",
    "CONFIG SET latency-tracking-info-percentiles ''",
    "CONFIG GET latency-tracking-info-percentiles",
    "CONFIG SET hz abc",
    "CONFIG SET hz '1 0'",
    "CONFIG SET hz 10000",
    "CONFIG GET hz",
    "CONFIG SET hz 0",
    "CONFIG GET hz",
    "CONFIG SET dir /x",
    "CONFIG SET dbfilename x",
    "CONFIG SET unixsocket /x",
    "CONFIG SET unixsocketperm 777",
    "CONFIG SET databases 3",
    "CONFIG SET logfile /x",
    "CONFIG SET tcp-backlog 1",
    "CONFIG SET enable-debug-command yes",
    "CONFIG SET auto-aof-rewrite-percentage -1",
    "CONFIG SET list-compress-depth 1",
    "CONFIG RESETSTAT",
    "CONFIG RESETSTAT x",
    "CONFIG REWRITE",
    "CONFIG REWRITE x",
    "CONFIG HELP x",
    "CONFIG SET maxmemory-clients 5%",
    "CONFIG GET maxmemory-clients",
    "CONFIG SET maxmemory-clients 101%",
    "CONFIG SET maxmemory-clients -5%",
    "CONFIG SET maxmemory-clients x",
    "CONFIG SET maxmemory-clients 1gb",
    "CONFIG GET maxmemory-clients",
    "CONFIG SET maxmemory-clients 0",
]


@pytest.fixture(scope="module")
def penstock() -> Iterator[PenstockServer]:
    with running_penstock() as server:
        yield server


def words_of(line: str) -> list[bytes]:
    """Split at blanks outside single quotes."""
    pieces = line.split("'")
    words = []
    for number, piece in enumerate(pieces):
        words += [piece] if number % 2 else piece.split()
    return [word.encode() for word in words]


def test_replies_and_refusals_are_those_of_redis(
    penstock: PenstockServer, redis_server: RedisServer
) -> None:
    with RawRedis(penstock.port) as ours, RawRedis(redis_server.port) as theirs:
        for line in COMMANDS:
            expected = theirs.ask([words_of(line)])[0]
            found = ours.ask([words_of(line)])[0]
            if isinstance(expected, list):  # Redis replies in the order of a hash table
                expected, found = by_name(expected), by_name(found)
            assert found == expected, line


def by_name(pairs: list[bytes]) -> list[tuple[bytes, bytes]]:
    return sorted(zip(pairs[::2], pairs[1::2], strict=True))


def test_help_has_the_syntax_lines_of_redis(
    penstock: PenstockServer, redis_server: RedisServer
) -> None:
    shown = []
    for port in (penstock.port, redis_server.port):
        with RawRedis(port) as client:
            (lines,) = client.ask([[b"CONFIG", b"HELP"]])
        shown.append([line for line in lines if not line.startswith(" ")])
    assert shown[0] == shown[1]


OUR_OWN = {
    *(b"auth-timeout", b"compat-version", b"replica-allow-empty-primary", b"replica-foreign-types"),
    *(b"min-replicas-ack", b"min-replicas-ack-fsync", b"min-replicas-ack-timeout"),
    *(b"min-replicas-stale-reads", b"ping-fails-without-disk"),
    *(b"metrics-port", b"metrics-bind", b"metrics-streams-max", b"log-format"),
    *(b"stream-retention", b"consumer-idle-timeout"),
}
SINCE_8_6 = {b"stream-idmp-duration", b"stream-idmp-maxsize"}
# Deliberate differences: docs/configuration.md gives the reasons.
OTHER_DEFAULTS = {
    b"appendfsync",
    b"bind",
    b"client-output-buffer-limit",
    b"dir",
    b"port",
    b"tcp-backlog",
}


@pytest.mark.parametrize("level", BY_LEVEL)
def test_directives_and_defaults_are_those_of_redis_with_few_exceptions(
    port: int, level: str
) -> None:
    with running_penstock("--enable-debug-command", "yes") as fresh:
        ours = settings_of(fresh.port)
    theirs = settings_of(port)
    new = SINCE_8_6 if level != "8.6" else set()
    assert ours.keys() - theirs.keys() == OUR_OWN | new
    common = ours.keys() & theirs.keys()
    assert {name for name in common if ours[name] != theirs[name]} == OTHER_DEFAULTS


def settings_of(port: int) -> dict[bytes, bytes]:
    with RawRedis(port) as client:
        return dict(by_name(client.ask([[b"CONFIG", b"GET", b"*"]])[0]))
