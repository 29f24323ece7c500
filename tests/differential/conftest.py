"""Fixtures of the comparisons with a real Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import NO_REDIS
from tests.support.servers.redis_server import redis_program_or_none, running_redis


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a new Redis with DEBUG enabled, which switches off active expiry."""
    if redis_program_or_none() is None:
        pytest.skip(NO_REDIS)
    with running_redis("--enable-debug-command", "yes") as server:
        yield server.port
