"""The nodes of a list have the same bytes and boundaries as in a real Redis.

No inserted or replaced element is larger than a node: see the docstring of core/list_value.
"""

from __future__ import annotations

import random

import pytest

from penstock.core.check import check_list
from penstock.core.list_value import ListLimits, ListValue
from tests.support.campaign import cases
from tests.support.rdb.dump_payloads import list_nodes
from tests.support.servers.redis_server import RedisServer
from tests.support.structures.listpacks import EDGE_INTEGERS, NOT_INTEGERS

KEY = "l"
STEPS = 120
CHECKPOINT_STEPS = 20
LISTPACK_SIZES = [-2, -2, -1, -3, -4, -5, 0, 1, 2, 3, 7, 128, 5000]
COMMON = [b"a", b"7", b"x" * 100]  # so that removals find something
LONG_SIZES = [62, 63, 64, 65, 126, 127, 4050, 4080, 4095, 4096, 8170, 8185, 8192, 16376, 70_000]


class Pair:
    """One list in penstock and in Redis. Every step is done in both."""

    def __init__(self, server: RedisServer, dice: random.Random, listpack_size: int) -> None:
        self.dice = dice
        self.client = server.client
        self.client.config_set("rdbcompression", "no")
        self.client.config_set("list-max-listpack-size", listpack_size)
        self.limits = ListLimits()
        self.limits.set_listpack_size(listpack_size)
        self.value = ListValue(self.limits)
        self.edited = False
        self.log: list[tuple[object, ...]] = []

    def redis(self, *command: bytes | str | int) -> object:
        self.log.append(tuple(part if len(str(part)) < 60 else "..." for part in command))
        return self.client.execute_command(*command)  # type: ignore[no-untyped-call]

    # --- Steps -------------------------------------------------------------------------------------

    def push(self) -> None:
        left = self.dice.random() < 0.5
        many = [self.element() for _ in range(self.dice.choice([1, 1, 2, 10, 200]))]
        for data in many:
            (self.value.push_left if left else self.value.push_right)(data)
        assert self.redis("LPUSH" if left else "RPUSH", KEY, *many) == self.value.length

    def pop(self) -> None:
        if self.dice.random() < 0.5:
            assert self.redis("LPOP", KEY) == self.value.pop_left_or_none()
        else:
            assert self.redis("RPOP", KEY) == self.value.pop_right_or_none()

    def pop_many(self) -> None:
        length = self.value.length
        count = min(self.dice.choice([1, 5, 50, 300]), length)
        if count and self.dice.random() < 0.5:
            assert self.redis("LPOP", KEY, count) == self.value.range(0, count - 1)
            self.value.trim(count, length - 1)
        elif count:
            popped = self.value.range(length - count, length - 1)
            assert self.redis("RPOP", KEY, count) == popped[::-1]
            self.value.trim(0, length - count - 1)

    def rotate(self) -> None:
        source, target = self.dice.choice(["LEFT", "RIGHT"]), self.dice.choice(["LEFT", "RIGHT"])
        left = source == "LEFT"
        data = self.value.pop_left_or_none() if left else self.value.pop_right_or_none()
        if data is not None:
            (self.value.push_left if target == "LEFT" else self.value.push_right)(data)
        assert self.redis("LMOVE", KEY, KEY, source, target) == data

    def remove(self) -> None:
        value = self.present()
        count = self.dice.choice([0, 1, -1, 3, -3, 30, -30])
        assert self.redis("LREM", KEY, count, value) == self.value.remove(value, count)

    def insert(self) -> None:
        pivot, data = self.present(), self.small_element()
        after = self.dice.random() < 0.5
        found = self.value.insert(pivot, data, after)
        self.edited = self.edited or found
        length = self.value.length if found else -1 if self.value.length else 0
        assert self.redis("LINSERT", KEY, "AFTER" if after else "BEFORE", pivot, data) == length

    def replace(self) -> None:
        if self.value.length:
            index = self.place() - self.dice.choice([0, self.value.length])
            data = self.small_element()
            assert self.value.replace(index, data)
            self.edited = True
            self.redis("LSET", KEY, index, data)

    def trim(self) -> None:
        length = self.value.length
        start = min(self.dice.choice([0, 0, 1, 5, 60]), length)
        end = length - 1 - self.dice.choice([0, 0, 1, 5, 60])
        if start <= end:
            self.redis("LTRIM", KEY, start, end)
            self.value.trim(start, end)

    def look(self) -> None:
        if self.value.length:
            start, end = self.place(), self.place()
            assert self.redis("LINDEX", KEY, start) == self.value.get_or_none(start)
            assert self.redis("LINDEX", KEY, -start) == self.value.get_or_none(-start)
            assert self.redis("LRANGE", KEY, start, end) == self.value.range(start, end)
            rank = self.dice.choice([1, -1, 2, -2, 5])
            count, most = self.dice.choices([0, 1, 3, 20], k=2)
            value = self.present()
            found = self.value.positions(value, rank, count, most)
            options = f"RANK {rank} COUNT {count} MAXLEN {most}".split()
            assert self.redis("LPOS", KEY, value, *options) == found

    # --- Choices -----------------------------------------------------------------------------------

    def place(self) -> int:
        return self.dice.choice([0, self.value.length - 1, self.dice.randrange(self.value.length)])

    def present(self) -> bytes:
        """An element that is in the list, most of the time."""
        if self.dice.random() < 0.5 and self.value.length:
            return self.value.get_or_none(self.place()) or b""
        return self.dice.choice(COMMON)

    def small_element(self) -> bytes:
        """One that is not larger than a node."""
        return self.element()[: self.limits.bytes_max]

    def element(self) -> bytes:
        kind = self.dice.randrange(8)
        if kind == 0:
            return b"%d" % self.dice.choice(EDGE_INTEGERS)
        if kind == 1:
            return b"%d" % self.dice.randint(-(2 ** self.dice.randint(1, 63)), 2**20)
        if kind == 2:
            return self.dice.choice(NOT_INTEGERS)
        if kind == 3 and self.dice.random() < 0.1:
            return self.dice.randbytes(self.dice.choice(LONG_SIZES))
        if kind < 6:
            return self.dice.choice(COMMON)
        return self.dice.randbytes(self.dice.randint(0, 200))

    # --- Comparing ---------------------------------------------------------------------------------

    def compare(self) -> None:
        check_list(self.value, self.limits, self.edited)
        payload = self.client.dump(KEY)
        assert payload is None or isinstance(payload, bytes)
        theirs = [] if payload is None else list_nodes(payload)
        ours = list(self.value.nodes())
        for number, (our_node, their_node) in enumerate(zip(ours, theirs, strict=False)):
            assert our_node.hex(" ") == their_node.hex(" "), f"node {number}"
        assert len(ours) == len(theirs)


STEP_WEIGHTS = {
    Pair.push: 40,
    Pair.pop: 20,
    Pair.pop_many: 5,
    Pair.rotate: 10,
    Pair.remove: 10,
    Pair.insert: 15,
    Pair.replace: 10,
    Pair.trim: 3,
    Pair.look: 10,
}


@pytest.mark.parametrize("seed", range(cases(400)))
def test_a_random_list_has_the_nodes_of_redis(redis_server: RedisServer, seed: int) -> None:
    dice = random.Random(seed)
    pair = Pair(redis_server, dice, LISTPACK_SIZES[seed % len(LISTPACK_SIZES)])
    steps = dice.choices(list(STEP_WEIGHTS), list(STEP_WEIGHTS.values()), k=STEPS)
    try:
        for n, step in enumerate(steps):
            step(pair)
            if n % CHECKPOINT_STEPS == 0:
                pair.compare()
        pair.compare()
    except AssertionError as error:
        error.add_note(f"seed {seed}, the last commands: {pair.log[-8:]}")
        raise


@pytest.mark.parametrize("listpack_size", [-1, -2, -3, -4, -5, 100])
@pytest.mark.parametrize("left", [True, False])
def test_a_node_ends_at_the_same_element_as_in_redis(
    redis_server: RedisServer, listpack_size: int, left: bool
) -> None:
    """The last element that fits has the same size, for elements with every overhead."""
    pair = Pair(redis_server, random.Random(0), listpack_size)
    limit = pair.limits.bytes_max
    for size in (1, 2, 60, 300, limit // 2):
        for short in range(-3, 14):
            pair.client.delete(KEY)
            pair.value = ListValue(pair.limits)
            push = pair.value.push_left if left else pair.value.push_right
            # 7 bytes of header and end; at most 9 around each element
            for data in (b"f" * (limit - 7 - 9 - size - short), b"s" * size, b"12345"):
                push(data)
                pair.redis("LPUSH" if left else "RPUSH", KEY, data)
            pair.compare()


def test_many_small_integers_have_the_nodes_of_redis(redis_server: RedisServer) -> None:
    """A node of 64 KiB holds more elements than any other."""
    pair = Pair(redis_server, random.Random(0), -5)
    many = [b"5"] * 70_000
    pair.redis("RPUSH", KEY, *many)
    for data in many:
        pair.value.push_right(data)
    pair.compare()
    assert pair.redis("LREM", KEY, -40_000, "5") == pair.value.remove(b"5", -40_000) == 40_000
    pair.compare()
