"""The four backends of penstock.work, each running and empty; in `make soak` also the oldest Redis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import penstock
from penstock.work import App
from penstock.work.backend import Backend, EmbeddedBackend, ServerBackend
from tests.support.campaign import SOAK
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.programs import REDIS_6_2, REDIS_7_0, VALKEY_9
from tests.support.servers.redis_server import running_redis

PROGRAMS = {"redis": REDIS_7_0, "valkey": VALKEY_9} | ({"redis-6.2": REDIS_6_2} if SOAK else {})
SERVERS = ("penstock", *PROGRAMS)
NAMES = ("embedded", *SERVERS)


@contextmanager
def running_url(name: str) -> Iterator[str]:
    """The URL of a server that was just started."""
    if name == "penstock":
        with running_penstock() as server:
            yield f"redis://127.0.0.1:{server.port}"
        return
    PROGRAMS[name].need()
    with running_redis(program=PROGRAMS[name]) as other:
        yield f"redis://127.0.0.1:{other.port}"


@contextmanager
def running_backend(name: str, level: str | None = None) -> Iterator[Backend]:
    """A backend by its name; an embedded one may behave as another version of Redis."""
    if name == "embedded":
        with penstock.open(compat_version=level) as database:
            yield EmbeddedBackend(database)
        return
    with running_url(name) as url:
        backend = ServerBackend(url)
        yield backend
        backend.close()


@contextmanager
def empty_app(url: str) -> Iterator[App]:
    """An App on a backend without data."""
    app = App(url, group="g")
    app.backend.ask("FLUSHALL")
    yield app
    app.close()
