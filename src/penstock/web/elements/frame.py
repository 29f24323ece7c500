"""The frame of every page: header, navigation, error line, light and dark theme, refresh timer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from penstock.client.replies import UnexpectedReply
from penstock.human.show import harmless
from penstock.web.board import Board
from penstock.web.design.scale import DRAWER_BELOW, NAVIGATION
from penstock.web.design.style import page_css
from penstock.web.elements.keys import PageKeys
from penstock.web.http.address import QueryReader
from penstock.web.http.names import link
from penstock.web.http.sessions import Role, Session, session_of
from penstock.web.http.time_range import RANGE_COOKIE, RANGES, parse_range
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerUnreachable

Act = Callable[[], Awaitable[None]]

DARK_COOKIE = "penstock-dark"
RETRY_SECONDS = 1.0
HEALTH_SECONDS = 0.5
# A page that waits longer for its data is shown without them; NiceGUI gives up after three seconds.
FIRST_SECONDS_MAX = 1.5
OUT_OF_DATE = ". The page may be out of date; retrying."

SERVERS_VIEW = "servers"  # the only page that is not about one server
SERVERS = f"/{SERVERS_VIEW}"
LOGOUT = "/logout"
# Name, text, icon and key of each page.
VIEWS = (
    ("overview", "Overview", "monitor_heart", "o"),
    ("streams", "Streams", "view_stream", "s"),
    ("pipeline", "Pipelines", "account_tree", "l"),
    ("workers", "Workers", "engineering", "k"),
    ("replication", "Replication", "sync_alt", "r"),
    ("clients", "Clients", "devices", "c"),
    ("slowlog", "Slow log", "timer", "w"),
    ("configuration", "Configuration", "tune", "f"),
)
STREAM_VIEWS = (
    ("stream", "Entries", "list"),
    ("groups", "Groups", "groups"),
    ("retention", "Retention", "auto_delete"),
    ("structure", "Structure", "schema"),
)


class PageFrame:
    """The frame of a page. The page fills `content` and calls `keep_fresh` or `load`."""

    def __init__(self, board: Board, title: str, view: str, name: bytes | None = None) -> None:
        self.board = board
        self._client = ui.context.client
        self.may_change = board.settings.allow_writes and self.current_session().may_change
        where = f" - {board.name}" if board.settings.has_several else ""
        ui.page_title(f"{title}{where} - penstock")
        ui.add_css(page_css())
        self._dark = ui.dark_mode(_dark_of(self._client.request.cookies.get(DARK_COOKIE)))
        self.seconds = parse_range(self._client.request.cookies.get(RANGE_COOKIE))
        self._view = view
        self._is_about_one = view != SERVERS_VIEW
        self._has_charts = view in ("overview", "groups", "pipeline")
        self.keys = PageKeys()
        drawer = self._navigation("streams" if name is not None else view)
        with ui.header().classes("bar items-center no-wrap"):
            self._header(drawer)
        self._error = ui.label().classes("error wrap").props('role="alert"')
        self._error.set_visibility(False)
        self._error_text = ""
        self._timer_may_clear = False
        if name is not None:
            self._stream_links(view, name)
        else:
            heading(title, "title", level=1)
        self.content = ui.element("section").props('tabindex="-1"').classes("view")
        ui.skip_link("Skip to content", target=self.content)
        self._show_health()
        ui.timer(HEALTH_SECONDS, self._look)

    def _navigation(self, view: str) -> ui.left_drawer:
        with ui.left_drawer(value=False, fixed=True).classes("side") as drawer:
            drawer.props(f"show-if-above width={NAVIGATION} breakpoint={DRAWER_BELOW}")
            with ui.element("nav").props('aria-label="pages"'):
                if self.board.settings.has_several:
                    _nav_link("Servers", "dns", SERVERS, current=view == SERVERS_VIEW)
                    self.keys.add("v", "Servers", partial(ui.navigate.to, SERVERS))
                for target, text, icon, key in VIEWS if view != SERVERS_VIEW else ():
                    _nav_link(text, icon, link(target), current=view == target)
                    self.keys.add(key, text, partial(ui.navigate.to, link(target)))
                if self.board.settings.password:
                    ui.separator().classes("q-my-sm")
                    _nav_link("Log out", "logout", LOGOUT, current=False)
        return drawer

    def _header(self, drawer: ui.left_drawer) -> None:
        ui.button(icon="menu", on_click=drawer.toggle).props(
            'flat dense round aria-label="show or hide the navigation"'
        )
        ui.label("penstock").classes("brand")
        ui.space()
        if self.board.recorder.is_on and self._has_charts:
            choice = ui.select(RANGES, value=self.seconds, on_change=self._choose_range)
            choice.props('dense borderless options-dense aria-label="time range of charts"')
            choice.tooltip("time range of charts")
        if self.may_change:
            with ui.element("span").classes("writes chip").tooltip("changes can be made here"):
                ui.label("writes allowed").classes("gt-xs")
                ui.label("writes").classes("lt-sm")
        elif self.current_session().role is Role.VIEWER:
            ui.label("viewer").classes("viewer chip").tooltip(
                "you see everything and change nothing"
            )
        if self._is_about_one:
            if self.board.settings.has_several:
                self._server_list()
            ui.label(self.board.server.name).classes("mono small gt-xs").tooltip("connected server")
        ui.button(icon="keyboard", on_click=self.keys.show_help).props(
            'flat dense round aria-label="keyboard help" aria-haspopup=dialog'
        ).classes("gt-xs")
        ui.button(icon="contrast", on_click=self._turn_dark).props(
            'flat dense round aria-label="switch between light and dark"'
        )

    def _server_list(self) -> None:
        names = [server.name for server in self.board.settings.servers]
        choice = ui.select(names, value=self.board.name, on_change=self._choose_server)
        choice.props('dense borderless options-dense aria-label="server"').tooltip("server")

    def _choose_server(self, event: ValueChangeEventArguments[str]) -> None:
        """Open the same page of another server. A stream may not exist there."""
        view = self._view if self._view in [name for name, *_ in VIEWS] else "streams"
        ui.navigate.to(f"{self.board.settings.path_of(event.value)}/{link(view)}")

    def current_session(self) -> Session:
        """The session of the page, or that of its websocket if it may do less.

        They differ if the user has logged out and in again since the page was loaded.
        """
        ours = session_of(self._client.request.scope)
        environment = self._client.environ
        if environment is None:
            return ours
        theirs = session_of(environment.get("asgi.scope", {}))
        return min(ours, theirs, key=lambda session: (session.is_open, session.may_change))

    def _choose_range(self, event: ValueChangeEventArguments[int]) -> None:
        keep_cookie(RANGE_COOKIE, str(event.value))
        self.seconds = event.value

    def _stream_links(self, view: str, name: bytes) -> None:
        with ui.element("div").classes("part"):
            heading(harmless(name), "title mono wrap", level=1)
            with ui.element("nav").props('aria-label="pages of this stream"').classes("tabs"):
                for target, text, icon in STREAM_VIEWS:
                    _nav_link(text, icon, link(target, name), current=view == target)

    def _turn_dark(self) -> None:
        now = not self._dark.value
        self._dark.set_value(now)
        keep_cookie(DARK_COOKIE, str(int(now)))

    async def attempt(self, act: Act) -> bool:
        """Call `act`. An error is shown in one line at the top of the page. Returns whether it succeeded."""
        if not await self._try(act, by_timer=False):
            return False
        self._show_error("")
        return True

    async def renew(self, act: Act) -> None:
        """As `attempt`, for a timer. It clears only its own errors and those of an unreachable server."""
        if await self._try(act, by_timer=True) and self._timer_may_clear:
            self._show_error("")

    async def _try(self, act: Act, by_timer: bool) -> bool:
        if not self.current_session().is_open:
            return False
        try:
            await act()
        except (ServerUnreachable, Refused, UnexpectedReply, ValueError) as error:
            is_unreachable = isinstance(error, ServerUnreachable)
            self._timer_may_clear = by_timer or is_unreachable
            more = OUT_OF_DATE if is_unreachable else ""
            self._show_error(harmless(str(error)) + more)
            return False
        return True

    async def keep_fresh(self, act: Act, seconds: float) -> None:
        """Call `act` now, and then at intervals as long as the page is open."""
        is_done = await self._first(act)
        if self._client.is_deleted:
            return  # a program fetched the page, and the server was slow
        if not is_done:
            ui.timer(RETRY_SECONDS, lambda: self.renew(act), once=True)
        ui.timer(seconds, lambda: self.renew(act), immediate=False)

    async def load(self, act: Act) -> None:
        """Call `act` once, and retry until it succeeds."""

        async def again() -> None:
            if await self.attempt(act):
                timer.cancel()

        if not await self._first(act) and not self._client.is_deleted:
            timer = ui.timer(RETRY_SECONDS, again)

    async def _first(self, act: Act) -> bool:
        """Call `act` for a fresh page, which does not wait for a server that does not answer."""
        if self._problem():
            return False
        try:
            return await asyncio.wait_for(self.attempt(act), FIRST_SECONDS_MAX)
        except TimeoutError:
            return False

    def warn_about(self, query: QueryReader, target: str) -> None:
        """Show what is wrong with the URL, and a link to a correct one."""
        if not query.problems:
            return
        with self.content, ui.row().classes("items-baseline gap-2"):
            ui.label(" ".join(query.problems)).classes("wrap warning")
            if query.has_name:
                ui.link("Correct the URL", target)
            else:
                ui.link("All streams", link("streams"))

    def _problem(self) -> str:
        """Why the server of this page does not answer, or nothing."""
        return self.board.health.problem if self._is_about_one else ""

    def _show_error(self, text: str) -> None:
        self._error_text = text
        self._show_health()

    def _look(self) -> None:
        """Show the state of the server. A page whose session has ended asks for the login instead."""
        if self.current_session().is_open:
            self._show_health()
        else:
            ui.navigate.reload()

    def _show_health(self) -> None:
        """Show an unreachable server, which every page says at once, or else the page's own error."""
        problem = self._problem()
        text = harmless(problem) + OUT_OF_DATE if problem else self._error_text
        if self._error.text != text:
            self._error.set_text(text)
            self._error.set_visibility(bool(text))


def keep_cookie(name: str, value: str) -> None:
    """Remember a choice in the browser for a year. The value is percent-encoded."""
    ui.run_javascript(f"document.cookie='{name}={value};path=/;max-age=31536000;samesite=lax'")


def show_url(url: str) -> None:
    """Update the address bar, so that the URL can be bookmarked and shared."""
    ui.navigate.history.replace(url)


def heading(text: str, classes: str = "subtitle", level: int = 2) -> ui.label:
    """A heading, also for screen readers."""
    made = ui.label(text).classes(classes)
    made.props(f'role="heading" aria-level="{level}"')
    return made


def attribute(text: str) -> str:
    """Text for the quotes of a prop, which NiceGUI parses like a shell."""
    return text.replace("\\", "").replace('"', "'")


def _nav_link(text: str, icon: str, target: str, current: bool) -> None:
    with ui.link(target=target).classes("nav") as made:
        ui.icon(icon)
        ui.label(text)
    if current:
        made.props('aria-current="page"')


def _dark_of(cookie: str | None) -> bool | None:
    return {"0": False, "1": True}.get(cookie or "")
