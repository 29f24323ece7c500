"""Fixtures of the comparisons with a real Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.programs import BY_LEVEL
from tests.support.servers.redis_server import running_redis


@pytest.fixture
def level() -> str:
    """The version of Redis to compare with. A test for several versions has it as its parameter."""
    return "7.0"


@pytest.fixture
def port(level: str) -> Iterator[int]:
    """The port of a new Redis with DEBUG enabled, which switches off active expiry."""
    BY_LEVEL[level].need()
    with running_redis("--enable-debug-command", "yes", program=BY_LEVEL[level]) as server:
        yield server.port
