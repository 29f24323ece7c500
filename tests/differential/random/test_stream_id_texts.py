"""Stream ids are parsed as in a real Redis."""

from __future__ import annotations

import random

import pytest
import redis

from penstock.core import stream_id
from penstock.engine.execute import worded
from penstock.errors import CoreError
from tests.support.campaign import cases
from tests.support.engine.id_texts import ID_TEXTS, NO_ID_TEXTS
from tests.support.servers.answers import answers
from tests.support.servers.redis_server import RedisServer

TEXTS = [text for text, _, _ in ID_TEXTS]
TEXTS += [text for text in NO_ID_TEXTS if text != b"$"]  # has a meaning of its own for XGROUP
EDGES = [edge + text for edge in (b"", b"(") for text in TEXTS]


def ours(text: bytes) -> object:
    """The id in a text, including `-` and `+`, or the error text."""
    try:
        return stream_id.parse_edge(text, 0).text
    except CoreError as error:
        return str(worded(error))


def theirs(server: RedisServer, texts: list[bytes]) -> list[object]:
    """The same from Redis, which shows a parsed id as the position of a group."""
    server.client.delete("s")
    server.client.xgroup_create("s", "g", mkstream=True)
    commands: list[tuple[bytes | str, ...]] = []
    for text in texts:
        commands += [("XGROUP SETID", "s", "g", text), ("XINFO GROUPS", "s")]
    replies = answers(server, *commands)
    ids: list[object] = []
    for set_id, groups in zip(replies[::2], replies[1::2], strict=True):
        if isinstance(set_id, redis.ResponseError):
            ids.append(str(set_id))
        else:
            ids.append(groups[0]["last-delivered-id"])
    return ids


def test_listed_texts_are_the_same_ids(redis_server: RedisServer) -> None:
    found = theirs(redis_server, TEXTS)
    assert list(zip(TEXTS, found, strict=True)) == [(text, ours(text)) for text in TEXTS]


def test_random_texts_are_the_same_ids(redis_server: RedisServer) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    texts = []
    for _ in range(cases(20_000)):
        text = bytearray(rng.choice(TEXTS))
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(text))
            text[at : at + rng.randrange(2)] = bytes(
                rng.choices(b"0159-+ \t\0a", k=rng.randrange(3))
            )
        texts.append(bytes(text))
    found = theirs(redis_server, texts)
    wrong = [
        (text, reply, ours(text))
        for text, reply in zip(texts, found, strict=True)
        if reply != ours(text)
    ]
    assert not wrong, f"seed {seed}"


@pytest.mark.parametrize("is_start", [True, False], ids=["start", "end"])
def test_ends_of_ranges_are_accepted_and_refused_alike(
    redis_server: RedisServer, is_start: bool
) -> None:
    if is_start:
        found = answers(redis_server, *(("XRANGE", "s", text, "+") for text in EDGES))
    else:
        found = answers(redis_server, *(("XRANGE", "s", "-", text) for text in EDGES))
    refusals = [str(reply) if reply else "" for reply in found]
    assert list(zip(EDGES, refusals, strict=True)) == [
        (text, refusal_of_edge(text, is_start)) for text in EDGES
    ]


def refusal_of_edge(text: bytes, is_start: bool) -> str:
    try:
        stream_id.parse_range_start(text) if is_start else stream_id.parse_range_end(text)
    except CoreError as error:
        return str(worded(error))
    return ""
