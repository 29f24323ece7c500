"""Several processes that send orders, and tell how far they are."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from itertools import islice
from multiprocessing.connection import Connection, wait

import redis

from penstock.demo.orders import Share, Tally, orders_of
from penstock.errors import PenstockError

PIPELINE = 500


class ProducerLost(PenstockError):
    """A producer ended before it had sent its share."""


def produce_all(
    url: str, stream: str, shares: list[Share], on_sent: Callable[[int], None]
) -> Tally:
    """Send all orders, and return what was sent; `on_sent` gets the number of each message."""
    context = multiprocessing.get_context(
        "spawn"
    )  # this process has threads: a fork may not have them
    total = Tally()
    waiting: dict[Connection, multiprocessing.process.BaseProcess] = {}
    for share in shares:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_produce, args=(url, stream, share, theirs), daemon=True)
        process.start()
        theirs.close()
        waiting[ours] = process
    while waiting:
        for ready in wait(list(waiting)):
            assert isinstance(ready, Connection)
            try:
                news = ready.recv()
            except EOFError:
                raise ProducerLost("a producer ended before it had sent its share") from None
            if isinstance(news, str):
                raise ProducerLost(f"a producer could not go on: {news}")
            if isinstance(news, Tally):
                total.add(news)
                waiting.pop(ready).join()
            else:
                on_sent(news)
    return total


def _produce(url: str, stream: str, share: Share, told: Connection) -> None:
    """Runs in a process: tells of each message, then of all together, or why it could not."""
    try:
        told.send(_send_all(url, stream, share, told))
    except redis.RedisError as error:
        told.send(str(error))


def _send_all(url: str, stream: str, share: Share, told: Connection) -> Tally:
    tally = Tally()
    client = redis.Redis.from_url(url)
    orders = orders_of(share)
    while some := list(islice(orders, PIPELINE)):
        with client.pipeline(transaction=False) as pipeline:
            for order in some:
                words = [word for pair in order.fields.items() for word in pair]
                pipeline.execute_command("XADD", stream, "*", *words)  # type: ignore[no-untyped-call]
            pipeline.execute()
        for order in some:
            tally.count(order)
        told.send(len(some))
    client.close()
    return tally
