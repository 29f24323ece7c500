"""A server of each kind, and for the browser: many entries, a dashboard, Debian's Chromium."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import redis

from penstock.web.server.asking import ServerClient
from tests.conftest import IN_CI
from tests.support.servers.dashboard import (
    CHROMIUM_OPTIONS,
    NO_CHROMIUM,
    Dashboard,
    chromium_or_none,
    running_dashboard,
)
from tests.support.servers.loops import run_apart
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.redis_server import free_port, redis_program_or_none, running_redis
from tests.web.many_entries import fill

T = TypeVar("T")
NO_UI = "the extra `ui` is not installed: make build"


@dataclass(frozen=True)
class Live:
    """A running server with an ordinary client and the dashboard's client."""

    kind: str
    port: int
    client: Any

    def ask(self, act: Callable[[ServerClient], Awaitable[T]], allow_writes: bool = False) -> T:
        """Run a coroutine with a ServerClient in a new event loop."""

        async def run() -> T:
            server = ServerClient(f"redis://127.0.0.1:{self.port}", allow_writes)
            try:
                return await act(server)
            finally:
                await server.close()

        return run_apart(run())


@pytest.fixture(scope="session")
def live_penstock() -> Iterator[Live]:
    with running_penstock() as server, server.client() as client:
        yield Live("penstock", server.port, client)


@pytest.fixture(scope="session")
def live_redis() -> Iterator[Live]:
    if redis_program_or_none() is None:
        pytest.skip("no redis-server on PATH")
    with running_redis() as server, redis.Redis(port=server.port) as client:
        yield Live("redis", server.port, client)


@pytest.fixture(params=["penstock", "redis"])
def live(request: pytest.FixtureRequest) -> Live:
    """Each kind of server in turn, empty."""
    found: Live = request.getfixturevalue(f"live_{request.param}")
    found.client.flushall()
    return found


@pytest.fixture
def stream_of_ten(live: Live) -> Live:
    """Ten entries in `s`; ann has four of them pending in the group `g`."""
    for number in range(1, 11):
        live.client.xadd("s", {"n": number}, id=f"{number}-0")
    live.client.xgroup_create("s", "g", id="0")
    live.client.xreadgroup("g", "ann", {"s": ">"}, count=4)
    return live


@pytest.fixture(scope="session")
def filled() -> Iterator[PenstockServer]:
    """A server with a stream of many entries and data for every page."""
    with running_penstock() as server:
        with server.client() as client:
            fill(client)
        yield server


@pytest.fixture(scope="session")
def dashboard(filled: PenstockServer) -> Iterator[Dashboard]:
    """A read-only dashboard."""
    pytest.importorskip("nicegui", reason=NO_UI)
    with running_dashboard(f"redis://127.0.0.1:{filled.port}") as found:
        yield found


@pytest.fixture(scope="session")
def writing_dashboard(
    filled: PenstockServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Dashboard]:
    """A dashboard with --allow-writes and a history."""
    pytest.importorskip("nicegui", reason=NO_UI)
    options = ("--allow-writes", "--state-dir", str(tmp_path_factory.mktemp("state")))
    with running_dashboard(f"redis://127.0.0.1:{filled.port}", *options) as found:
        yield found


@dataclass(frozen=True)
class SharedDashboard:
    """A dashboard of two servers with two passwords. `down` does not run."""

    dashboard: Dashboard
    metrics_port: int
    operator: str = "open sesame"
    viewer: str = "let me look"

    @property
    def address(self) -> str:
        return self.dashboard.address

    def log_in(self, visitor: Visitor, password: str, path: str) -> Any:
        """Open a page through the login."""
        page = visitor.page
        page.goto(f"{self.address}{path}")
        page.get_by_label("Dashboard password").fill(password)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_selector(".view")
        return page


@pytest.fixture(scope="session")
def shared_dashboard(filled: PenstockServer) -> Iterator[SharedDashboard]:
    """A dashboard of several servers for viewers and operators, with metrics."""
    pytest.importorskip("nicegui", reason=NO_UI)
    port, metrics_port = free_port(), free_port()
    options = ("--url", f"down=redis://127.0.0.1:{port}", "--allow-writes")
    passwords = {
        "PENSTOCK_UI_PASSWORD": SharedDashboard.operator,
        "PENSTOCK_UI_VIEWER_PASSWORD": SharedDashboard.viewer,
    }
    with running_dashboard(
        f"prod=redis://127.0.0.1:{filled.port}",
        *options,
        *("--metrics", str(metrics_port)),
        **passwords,
    ) as found:
        yield SharedDashboard(found, metrics_port)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests."""
    program = chromium_or_none()
    if program is None:
        if IN_CI:
            pytest.fail(f"{NO_CHROMIUM}; CI does not go without")
        pytest.skip(NO_CHROMIUM)
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        # One context, so that scripts and styles are loaded once.
        yield chromium.new_context()
        chromium.close()


@dataclass
class Visitor:
    """A page in the browser, and its errors."""

    page: Any
    problems: list[str]

    def goto(self, dashboard: Dashboard, path: str) -> Any:
        """Open a page and wait until it is connected."""
        self.page.goto(dashboard.address + path)
        self.page.wait_for_selector(".view")
        return self.page


@pytest.fixture
def visitor(browser: Any) -> Iterator[Visitor]:
    """A new page of 1280 pixels that must not load from other hosts or have script errors."""
    browser.clear_cookies()
    page = browser.new_page()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.set_default_timeout(60_000)
    found = Visitor(page, [])
    page.on("pageerror", lambda error: found.problems.append(f"script: {error}"))
    page.on("dialog", lambda dialog: found.problems.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: _check_is_own(request.url, found.problems))
    yield found
    page.close()
    assert found.problems == []


def _check_is_own(url: str, problems: list[str]) -> None:
    if not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
        problems.append(f"asked for {url}")
