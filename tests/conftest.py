"""Set-up of every test run: checks the build, starts a real Redis, configures Hypothesis."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.builds import wrong_build_or_none
from tests.support.campaign import SOAK
from tests.support.servers.programs import REDIS_7_0, what_was_missed
from tests.support.servers.redis_server import RedisServer, redis_program_or_none, running_redis

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")
NO_REDIS = REDIS_7_0.missing

# The interpreted build may be slow on a busy machine. That is not a failure: no deadline, no too_slow.
settings.register_profile(
    "default",
    deadline=None,
    derandomize=IN_CI,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak",
    settings.get_profile("default"),
    derandomize=False,
    max_examples=10 * settings.get_profile("default").max_examples,
)
settings.load_profile("soak" if SOAK else "default")


def pytest_sessionstart() -> None:
    problem = wrong_build_or_none()
    if problem is None and IN_CI and redis_program_or_none() is None:
        problem = f"{NO_REDIS}, but CI needs one: see tools/provide-redis.sh"
    if problem is not None:
        raise pytest.UsageError(problem)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """End the run with the servers that were missing: skipped comparisons must not go unnoticed.

    As the outermost wrapper, it writes after all other summaries.
    """
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    for line in what_was_missed([str(report.longrepr) for report in skipped]):
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server for the whole run. Before each test it is emptied and its settings are restored."""
    REDIS_7_0.need()
    with running_redis() as server:
        yield server


@pytest.fixture(autouse=True)
def _redis_is_reset(request: pytest.FixtureRequest) -> None:
    if "redis_server" in request.fixturenames:
        server: RedisServer = request.getfixturevalue("redis_server")
        server.reset()
