"""FAILOVER between two servers, and writers that follow it and note every answer.

with working(first.port, second.port) as writers:
    until_answered(writers)
    hand_over(client_of(first.port), client_of(second.port))
    until_answered(writers)
lost(writers, client), longest_gap(writers)
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.replication.links import eventually, online, role

STREAM = "written"
TOKEN = b"token"
WRITERS = 5
ENOUGH = 20  # answers to each writer
REPLY_SECONDS_MAX = 20
PAUSE_SECONDS = 0.002


class Writer(threading.Thread):
    """Adds entries with tokens of its own. After an error it tries the next server.

    acknowledged   the tokens whose XADD was answered by an id
    times          when they were answered
    refused        how many were answered by an error, or not
    """

    def __init__(self, name: str, ports: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self._name = name
        self._clients = itertools.cycle([_client(port) for port in ports])
        self._ends = threading.Event()
        self.acknowledged: list[bytes] = []
        self.times: list[float] = []
        self.refused = 0

    def stop(self) -> None:
        """End after the current attempt."""
        self._ends.set()
        self.join()

    def run(self) -> None:
        client = next(self._clients)
        for number in itertools.count():
            if self._ends.wait(PAUSE_SECONDS):
                return
            token = f"{self._name}:{number}".encode()
            try:
                client.xadd(STREAM, {TOKEN: token})
            except redis.RedisError:  # the outcome may be unknown: such a token does not count
                self.refused += 1
                client = next(self._clients)
                continue
            self.acknowledged.append(token)
            self.times.append(time.monotonic())


def _client(port: int) -> Any:
    return redis.Redis(port=port, socket_timeout=REPLY_SECONDS_MAX, retry=Retry(NoBackoff(), 0))


@contextmanager
def working(*ports: int) -> Iterator[list[Writer]]:
    """Writers that work on servers, one of which is the primary."""
    writers = [Writer(f"w{number}", ports) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        for writer in writers:
            writer.stop()


def until_answered(writers: Sequence[Writer]) -> None:
    """Wait until every writer has got more answers."""
    before = [len(writer.acknowledged) for writer in writers]
    eventually(
        lambda: all(
            len(writer.acknowledged) >= count + ENOUGH
            for writer, count in zip(writers, before, strict=True)
        ),
        "every writer is answered",
    )


def hand_over(old: Any, new: Any, port: int = 0, more: Sequence[str] = ()) -> None:
    """FAILOVER, and wait until the roles are exchanged.

    It is refused until the log has a base. `port`: the one that the new primary announces, if it is another
    one than it has; `more`: options.
    """
    port = port or new.get_connection_kwargs()["port"]

    def has_taken_over() -> bool:
        if role(new)[0] != b"master":
            old.execute_command("FAILOVER", "TO", "127.0.0.1", port, *more)
        return bool(role(new)[0] == b"master")

    eventually(has_taken_over, "the target has taken over")
    eventually(lambda: role(old)[:4] == [b"slave", b"127.0.0.1", port, b"connected"], "it follows")
    online(new)


def lost(writers: Sequence[Writer], client: Any) -> set[bytes]:
    """The tokens that were acknowledged and are not there."""
    there = {fields[TOKEN] for _, fields in client.xrange(STREAM)}
    return {token for writer in writers for token in writer.acknowledged} - there


def longest_gap(writers: Sequence[Writer]) -> float:
    """The longest time, in seconds, in which no writer was answered."""
    times = sorted(when for writer in writers for when in writer.times)
    return max((after - before for before, after in itertools.pairwise(times)), default=0.0)
