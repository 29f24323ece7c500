"""A listpack has the same bytes as in a real Redis."""

from __future__ import annotations

import random

import pytest

from penstock.core import listpack
from tests.support.campaign import cases
from tests.support.rdb.dump_payloads import read_string, stream_nodes
from tests.support.servers.answers import answers
from tests.support.servers.redis_server import RedisServer
from tests.support.structures.listpacks import EDGE_INTEGERS, EDGE_STRING_SIZES, NOT_INTEGERS, pack

VALUES = [b"%d" % value for value in EDGE_INTEGERS]
VALUES += NOT_INTEGERS
VALUES += [b"s" * size for size in EDGE_STRING_SIZES]

SAME_FIELDS = 2
HASH_LISTPACK = 16


def random_value(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.4:
        return b"%d" % (rng.getrandbits(rng.randint(1, 65)) - rng.getrandbits(rng.randint(1, 64)))
    if kind < 0.6:
        return bytes(rng.choices(b"0123456789-+ ", k=rng.randint(0, 21)))
    if kind < 0.98:
        return rng.randbytes(rng.randrange(200))
    return rng.randbytes(rng.choice(EDGE_STRING_SIZES[:-3]) + rng.randrange(3))


def entry_of(fields: list[bytes]) -> list[int | bytes]:
    """The elements of a node with a single entry, which has the id of the node and these fields."""
    names, values = fields[::2], fields[1::2]
    return [1, 0, len(names), *names, 0, SAME_FIELDS, 0, 0, *values, 3 + len(names)]


def nodes_of_redis(server: RedisServer, entries: list[list[bytes]]) -> list[bytes]:
    """The node that Redis makes for each entry, in a new stream."""
    server.client.config_set("rdbcompression", "no")
    commands: list[tuple[bytes | str, ...]] = []
    for number, fields in enumerate(entries):
        commands += [("XADD", f"s{number}", "1-1", *fields), ("DUMP", f"s{number}")]
    nodes = []
    for payload in answers(server, *commands)[1::2]:
        [(key, node)] = stream_nodes(payload)
        assert key == bytes([0, 0, 0, 0, 0, 0, 0, 1] * 2)
        nodes.append(node)
    return nodes


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{value[:24]!r}x{len(value)}")
def test_an_edge_value_has_redis_s_bytes(redis_server: RedisServer, value: bytes) -> None:
    [node] = nodes_of_redis(redis_server, [[b"f", value]])
    assert pack(*entry_of([b"f", value])) == node


def test_an_edge_value_as_a_field_name_has_redis_s_bytes(redis_server: RedisServer) -> None:
    entries = [[value, b"v"] for value in VALUES]
    nodes = nodes_of_redis(redis_server, entries)
    assert nodes == [pack(*entry_of(fields)) for fields in entries]


def test_random_values_have_redis_s_bytes(redis_server: RedisServer) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(cases(200)):
        entries = [[random_value(rng), random_value(rng)] for _ in range(100)]
        nodes = nodes_of_redis(redis_server, entries)
        assert nodes == [pack(*entry_of(fields)) for fields in entries], f"seed {seed}"
        redis_server.client.flushall()


@pytest.mark.parametrize("pairs", [32763, 32764, 32765, 40000])
def test_a_count_of_65535_and_more_has_redis_s_header(
    redis_server: RedisServer, pairs: int
) -> None:
    fields = [b"a", b"1"] * pairs  # plus eight more elements
    [node] = nodes_of_redis(redis_server, [fields])
    assert pack(*entry_of(fields)) == node
    assert node[4:6] == min(2 * pairs + 8, 65535).to_bytes(2, "little")


def test_random_edits_of_a_hash_leave_redis_s_bytes(redis_server: RedisServer) -> None:
    """A small hash is a listpack of names and values, so it also tests replacing and deleting."""
    client = redis_server.client
    client.config_set("rdbcompression", "no")
    client.config_set("hash-max-listpack-value", 20_000)
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    lp = listpack.new()
    for _ in range(cases(5_000)):
        name, value = rng.choice(VALUES[:40]), random_value(rng)
        at = find_name(lp, name)
        if at and rng.random() < 0.4:
            client.hdel("h", name)
            listpack.delete(lp, at)
            listpack.delete(lp, at)
        else:
            client.hset("h", name, value)
            if at:
                listpack.insert(lp, listpack.next_at(lp, at), value, listpack.REPLACE)
            else:
                listpack.append(lp, name)
                listpack.append(lp, value)
        payload = client.dump("h")
        if payload is None:
            assert lp == listpack.new(), f"seed {seed}"
            continue
        assert payload[0] == HASH_LISTPACK
        assert read_string(payload, 1)[0] == lp, f"seed {seed}"


def find_name(lp: bytearray, name: bytes) -> int:
    """The position of a name among names and values, or 0."""
    at = listpack.first(lp)
    while at and not listpack.equals(lp, at, bytearray(name), 0, len(name)):
        at = listpack.next_at(lp, listpack.next_at(lp, at))
    return at
