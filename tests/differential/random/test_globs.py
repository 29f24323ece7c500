"""Glob patterns match the same names as in a real Redis."""

from __future__ import annotations

import random

import pytest
import redis

from penstock.core.glob import Glob
from tests.support.campaign import cases, seed

LETTERS = [b"ab", b"aAbBzZ", b"\x00\x10\x7f\x80\x90\xff", b"ab]-\\^[*?"]
NAMES = 60
SPECIAL = b"***???[[]]\\^--"


@pytest.fixture
def client(port: int) -> redis.Redis:
    return redis.Redis(port=port)


@pytest.mark.parametrize("letters", LETTERS)
def test_keys_finds_the_same_names(client: redis.Redis, letters: bytes) -> None:
    start = seed()
    dice = random.Random(start)
    names = {bytes(dice.choices(letters, k=dice.randint(0, 7))) for _ in range(NAMES)}
    client.mset(dict.fromkeys(names, 1))
    for _ in range(cases(20_000)):
        pattern = bytes(dice.choices(letters * 2 + SPECIAL, k=dice.randint(2, 12)))
        glob = Glob(pattern)
        found = {name for name in names if glob.matches(name)}
        assert found == set(client.keys(pattern)), (start, pattern)


def test_names_of_settings_match_without_regard_to_case(client: redis.Redis) -> None:
    start = seed()
    dice = random.Random(start)
    names = sorted(str(name) for name in client.config_get("*"))
    for _ in range(cases(10_000)):
        pattern = bytearray(dice.choice(names).encode())
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(pattern))
            pieces = (b"*", b"?", b"[A-M]", b"[m-A]", b"[Z-a]", b"[^\\aB]", b"[\\M\\m]", b"[@-z]")
            pattern[at : at + dice.randint(0, 2)] = dice.choice(pieces)
        text = bytes(pattern.upper() if dice.random() < 0.3 else pattern) + b"*"
        glob = Glob(text, ignore_case=True)
        found = {name for name in names if glob.matches(name.encode())}
        assert found == set(client.config_get(text)), (start, text)


@pytest.mark.parametrize("stars", [999, 1000, 1001])
def test_the_same_number_of_stars_matches(client: redis.Redis, stars: int) -> None:
    name = b"a" * 3000
    client.set(name, 1)
    if client.keys(b"*a" * 1001):
        pytest.skip("a Redis that has no limit for stars")
    for pattern in (b"*a" * stars, b"*a" * stars + b"*"):
        assert client.keys(pattern) == [name] * Glob(pattern).matches(name)
