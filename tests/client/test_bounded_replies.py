"""Replies that arrive in any pieces, and replies beyond the limits."""

from __future__ import annotations

import random
from typing import Any

import pytest
import redis

from penstock.client import bounded_replies
from penstock.client.bounded_replies import DEPTH_MAX, ReplyBuilder
from tests.support.campaign import cases, seed

NUMBERS = (0, -1, 7, 10**17, 10**18, 2**63 - 1, -(2**63))
NEXT = b"+the next reply\r\n"


def encoded(value: Any, dice: random.Random) -> bytes:
    """The bytes of a reply."""
    if value is None:
        return dice.choice([b"$-1\r\n", b"*-1\r\n"])
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, bytes):
        return b"$%d\r\n%b\r\n" % (len(value), value)
    return b"*%d\r\n" % len(value) + b"".join(encoded(one, dice) for one in value)


def some_value(dice: random.Random, depth: int = 0) -> Any:
    if depth < 4 and dice.random() < 0.5:
        return [some_value(dice, depth + 1) for _ in range(dice.randrange(5))]
    return dice.choice([None, dice.choice(NUMBERS), dice.randbytes(dice.randrange(30))])


def test_a_reply_is_the_same_in_whatever_pieces_it_arrives() -> None:
    start = seed()
    for number in range(cases(5000)):
        dice = random.Random(start + number)
        value = some_value(dice)
        data = encoded(value, dice) + NEXT
        builder = ReplyBuilder(Exception)
        begin = end = 0
        while not builder.is_done:
            assert builder.wanted > 0
            end += dice.randrange(1, 8)
            begin += builder.feed(data[begin:end])
        assert builder.result == value, f"seed {start + number}"
        assert data[begin:] == NEXT, f"seed {start + number}"


def test_a_string_says_how_much_is_missing() -> None:
    builder = ReplyBuilder(Exception)
    assert builder.feed(b"$10\r\nabc") == 5
    assert builder.wanted == 9
    assert builder.feed(b"abcdefghij\r\n+") == 12
    assert builder.result == b"abcdefghij"


def test_an_error_is_a_value() -> None:
    builder = ReplyBuilder(redis.ResponseError)
    builder.feed(b"*2\r\n-ERR no\r\n+OK\r\n")
    error, good = builder.result
    assert isinstance(error, redis.ResponseError)
    assert (str(error), good) == ("ERR no", b"OK")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*1\r\n" * (DEPTH_MAX + 1), "nested arrays"),
        (b"*9223372036854775807\r\n", "an array of 9223372036854775807 elements"),
        (b"*-2\r\n", "an array of -2 elements"),
        (b"$9223372036854775807\r\n", "a string of 9223372036854775807 bytes"),
        (b":9223372036854775808\r\n", "a number of 64 bits"),
        (b":1x\r\n", "a number is expected"),
        (b":\r\n", "a number is expected"),
        (b":1\n", "a line without an end"),
        (b"\n", "a line without an end"),
        (b"\r\n", "cannot begin like this"),
        (b"!1\r\n", "cannot begin like this"),
        (b"+" + bytes(bounded_replies.LINE_BYTES_MAX), "a line without an end"),
    ],
)
def test_what_is_no_reply_is_refused(data: bytes, text: str) -> None:
    with pytest.raises(redis.InvalidResponse, match=text):
        ReplyBuilder(Exception).feed(data)
