"""What more than one comparison with a real Redis needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import NO_REDIS
from tests.support.servers.redis_server import redis_program_or_none, running_redis


@pytest.fixture
def port() -> Iterator[int]:
    """A server of the test's own that lets DEBUG be used: expiry by itself must be switched off."""
    if redis_program_or_none() is None:
        pytest.skip(NO_REDIS)
    with running_redis("--enable-debug-command", "yes") as server:
        yield server.port
