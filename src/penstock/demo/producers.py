"""Sends orders from several processes and reports progress."""

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
    """A producer ended before it had sent all its orders."""


def produce_all(
    url: str, stream: str, shares: list[Share], on_sent: Callable[[int], None]
) -> Tally:
    """Send all orders and return the totals. `on_sent` gets the number of orders in each pipeline."""
    context = multiprocessing.get_context("spawn")  # fork is not safe in a process with threads
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
                raise ProducerLost("a producer ended before it had sent all its orders") from None
            if isinstance(news, str):
                raise ProducerLost(f"a producer failed: {news}")
            if isinstance(news, Tally):
                total.add(news)
                waiting.pop(ready).join()
            else:
                on_sent(news)
    return total


def _produce(url: str, stream: str, share: Share, results: Connection) -> None:
    """Runs in a process. Sends the number of orders of each pipeline, then the totals or an error text."""
    try:
        results.send(_send_all(url, stream, share, results))
    except redis.RedisError as error:
        results.send(str(error))


def _send_all(url: str, stream: str, share: Share, results: Connection) -> Tally:
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
        results.send(len(some))
    client.close()
    return tally
