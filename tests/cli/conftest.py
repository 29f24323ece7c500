"""Fixtures for the tests of the command line."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine
from tests.support.servers.redis_server import RedisServer


@pytest.fixture
def penstock(redis_server: RedisServer) -> CommandLine:
    """`penstock` and an empty server."""
    return CommandLine(redis_server)
