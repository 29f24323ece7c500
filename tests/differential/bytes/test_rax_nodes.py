"""The rax of a stream has as many keys and nodes as in a real Redis.

With one entry per node, each entry of the stream is a key of its rax, and deleting the entry removes the key.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from penstock.core.rax.tree import Rax
from tests.support.servers.redis_server import RedisServer

Ids = list[tuple[int, int]]

START_MS = 1_700_000_000_000


def sequential_ms(generator: random.Random, count: int) -> Ids:
    return [(START_MS + i, 0) for i in range(count)]


def one_ms_with_growing_seq(generator: random.Random, count: int) -> Ids:
    return [(START_MS, i) for i in range(count)]


def a_few_to_every_ms(generator: random.Random, count: int) -> Ids:
    ms, found = START_MS, Ids()
    while len(found) < count:
        ms += generator.randrange(1, 20)
        found += [(ms, seq) for seq in range(generator.randrange(1, 6))]
    return found[:count]


def gaps_of_all_magnitudes(generator: random.Random, count: int) -> Ids:
    largest = 2**128 - 1
    numbers = {1 + generator.getrandbits(generator.randrange(1, 128)) for _ in range(count)}
    return [divmod(number, 2**64) for number in sorted({*numbers, largest})]


def gaps_that_add_up(generator: random.Random, count: int) -> Ids:
    number, found = 0, Ids()
    for _ in range(count):
        number += 1 + generator.getrandbits(generator.randrange(1, 90))
        found.append(divmod(number, 2**64))
    return found


@pytest.mark.parametrize(
    "draw_ids",
    [
        sequential_ms,
        one_ms_with_growing_seq,
        a_few_to_every_ms,
        gaps_of_all_magnitudes,
        gaps_that_add_up,
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_keys_and_nodes_are_as_many_as_in_redis(
    redis_server: RedisServer, draw_ids: Callable[[random.Random, int], Ids], seed: int
) -> None:
    generator = random.Random(seed)
    ids = draw_ids(generator, 700)
    client = redis_server.client
    client.config_set("stream-node-max-entries", 1)
    tree = Rax()
    assert ids
    for start in range(0, len(ids), 50):
        pipeline = client.pipeline(transaction=False)
        for ms, seq in ids[start : start + 50]:
            pipeline.xadd("s", {"f": "v"}, id=f"{ms}-{seq}")
            tree.insert(ms.to_bytes(8, "big") + seq.to_bytes(8, "big"), ms)
        pipeline.execute()
        compare(redis_server, tree)
    tree.check()
    doomed = generator.sample(ids, len(ids))
    for start in range(0, len(doomed), 10):
        chosen = doomed[start : start + 10]
        assert client.xdel("s", *(f"{ms}-{seq}" for ms, seq in chosen)) == len(chosen)
        for ms, seq in chosen:
            assert tree.remove(ms.to_bytes(8, "big") + seq.to_bytes(8, "big"))
        compare(redis_server, tree)
        if start == len(doomed) // 20 * 10:
            tree.check()
    assert (tree.count, tree.node_count) == (0, 1)


def compare(server: RedisServer, tree: Rax) -> None:
    info = server.client.xinfo_stream("s")
    theirs = info["radix-tree-keys"], info["radix-tree-nodes"]
    assert (tree.count, tree.node_count) == theirs, "\n" + tree.draw()
