"""Like test_random_sessions, with a `penstock serve` process and over TCP.

The two processes have different clocks. So ids are always explicit, and times may differ by the delays of a
busy machine.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.differential.random.test_random_commands import GAP_MS_MAX, ROUND_COMMANDS, questions
from tests.differential.random.test_random_sessions import (
    CLIENTS,
    SUBSCRIPTIONS,
    Batch,
    Peer,
    SessionRound,
    ask,
    first_commands,
    last_words,
    received,
)
from tests.support.campaign import cases_per_level, levels, seed
from tests.support.random.key_commands import ALL_KEYS, DATABASES
from tests.support.random.list_commands import LIST_KEYS
from tests.support.random.session_commands import SessionWorld
from tests.support.random.stream_commands import Words
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.raw_redis import RawRedis


class Side:
    """One of the two servers: a connection for the set-up, and one that receives all messages and events."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.control = RawRedis(port)
        self.listener = RawRedis(port)
        self.listener.ask(SUBSCRIPTIONS)

    def close(self) -> None:
        self.control.__exit__()
        self.listener.__exit__()


@pytest.fixture
def sides(port: int, level: str) -> Iterator[tuple[Side, Side]]:
    """Redis and penstock."""
    options = ("--compat-version", level, "--enable-debug-command", "yes")
    with (
        running_penstock(*options) as penstock,
        contextlib.closing(Side(port)) as theirs,
        contextlib.closing(Side(penstock.port)) as ours,
    ):
        yield theirs, ours


@pytest.mark.parametrize("level", levels("8.0", "8.2", "8.6"))
def test_random_sessions_over_tcp_read_the_same_as_with_redis(
    sides: tuple[Side, Side], level: str
) -> None:
    start = seed()
    for n in range(cases_per_level(5_000) // ROUND_COMMANDS):
        with TcpRound(sides, f"{start}/{n}", level) as played:
            played.play()


class TcpRound(SessionRound):
    """Two empty servers, each in its own process."""

    clocks_agree = False

    def __init__(self, sides: tuple[Side, Side], name: str, level: str) -> None:
        self.sides = sides
        self.name = name
        self.world: Any = SessionWorld(random.Random(name), level)
        self.dice = self.world.dice
        self.gap_ms = GAP_MS_MAX // 2
        self.has_parted = False
        self.sent: list[Words] = []
        for side in sides:
            replies = side.control.ask(first_commands(self.world))
            assert replies == ["OK"] * len(replies)
            received(side.listener)
        self.peers = [self._new_peer() for _ in range(CLIENTS)]

    def __exit__(self, *_: object) -> None:
        for peer in self.peers:
            peer.theirs.__exit__()
            peer.ours.__exit__()

    def _new_peer(self) -> Peer:
        theirs, ours = (RawRedis(side.port) for side in self.sides)
        peer = Peer(theirs, ours, self.dice.random() < 0.5)
        for connection in (theirs, ours):
            connection.ask([[b"HELLO", b"3" if peer.resp3 else b"2"]])
        return peer

    def our_last_words(self, peer: Peer, data: bytes) -> bytes:
        return last_words(peer.ours, data)

    def compare_batch(self, peer: Peer, batch: Batch) -> None:
        ours, theirs = (ask(link, peer, batch)[0] for link in (peer.ours, peer.theirs))
        groups = zip(ours, theirs, strict=True)
        for (words, _, _), ((_, our_items), (_, their_items)) in zip(batch, groups, strict=True):
            self.sent.append([b"%d:" % self.peers.index(peer), *words])
            self.compare_items(peer, words, our_items, their_items)
        messages = [received(side.listener) for side in self.sides]
        if not self.has_parted:
            self.compare_messages(messages[1], messages[0], in_order=False)

    def questions(self) -> list[Words]:
        asked: list[Words] = []
        for index in range(DATABASES):
            asked += [[b"SELECT", b"%d" % index], [b"DBSIZE"]]
            for key in ALL_KEYS:
                asked += [[b"TYPE", key], [b"GET", key], [b"PEXPIRETIME", key], *questions(key)]
            for key in LIST_KEYS:
                asked += [[b"LRANGE", key, b"0", b"-1"], [b"PEXPIRETIME", key], [b"TYPE", key]]
        return asked
