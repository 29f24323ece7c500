"""Many workers on one stream, and many streams of one worker, each with a real connection."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from penstock.work import App
from penstock.work.backend import Backend, ServerBackend
from penstock.work.feed import Place
from penstock.work.running.worker import feeds_for
from penstock.work.settlement import ACK, Outcome
from tests.support.work.backends import SERVERS, empty_app, running_url
from tests.support.work.waiting import SECONDS_MAX, wait_until

WORKERS = 1000
FILES = WORKERS + 400


@pytest.fixture(scope="module", params=SERVERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < FILES:
        pytest.skip(f"ulimit -Hn is {hard}: not enough for {WORKERS} connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    with running_url(request.param) as url:
        yield url


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with empty_app(url) as app:
        yield app


def blocked(backend: Backend) -> int:
    """The number of clients that wait for an entry."""
    found = re.search(rb"blocked_clients:(\d+)", backend.ask("INFO", "clients"))
    return int(found[1]) if found else 0


def test_a_thousand_workers_wait_for_a_stream_and_share_it(app: App, url: str) -> None:
    @app.on("jobs")
    def job(number: int) -> None: ...

    with ExitStack() as stack:
        backends = [stack.enter_context(closing(ServerBackend(url))) for _ in range(WORKERS)]
        places = [
            Place(backend, backend, "g", f"host-1-{number:08x}", time.monotonic)
            for number, backend in enumerate(backends)
        ]
        feeds = [feed for place in places for feed in feeds_for(place, job)]
        for feed in feeds:
            feed.prepare()
        waits = stack.enter_context(ThreadPoolExecutor(WORKERS))
        waiting = [waits.submit(one.wait, {"jobs": "0-0"}, 9000) for one in backends]
        wait_until(lambda: blocked(app.backend) == WORKERS)
        job.send(0)
        assert all(one.result(SECONDS_MAX) for one in waiting)  # all wake up
        assert sum(len(feed.take(1).entries) for feed in feeds) == 1  # one gets it
        for number in range(1, 2 * WORKERS):
            job.send(number)
        taken = [(feed, entry) for feed in feeds for entry in feed.take(2).entries]
        assert len({entry.id for _, entry in taken}) == len(taken) == 2 * WORKERS - 1
        for feed in feeds:
            feed.renew()
        for feed, entry in taken:
            assert feed.settle([Outcome(entry.id, entry.attempt, ACK)]) == [True]
        for feed in feeds:
            feed.leave()
    assert app.backend.ask("XPENDING", "jobs", "g")[0] == 1  # that of the first take


def test_more_than_a_hundred_streams_each_have_a_connection(app: App) -> None:
    ran: list[int] = []

    @app.on("jobs", key="key", partitions=120, concurrency=1)
    def job(payload: dict[str, int]) -> None:
        ran.append(payload["key"])

    worker = app.worker()
    worker.start()
    wait_until(lambda: blocked(app.backend) == 120)
    for key in range(300):
        job.send({"key": key})
    wait_until(lambda: len(ran) == 300)
    assert worker.stop()
