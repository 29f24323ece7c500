"""The frame of every page: header, error line, light and dark theme, refresh timer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from penstock.client.replies import UnexpectedReply
from penstock.human.show import harmless
from penstock.web.board import Board
from penstock.web.colours import BAR, ON_BAR, UNREACHABLE, WRITES, theme_css
from penstock.web.http.address import QueryReader
from penstock.web.http.names import link
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerUnreachable

Act = Callable[[], Awaitable[None]]

DARK_COOKIE = "penstock-dark"
RETRY_SECONDS = 1.0
STREAM_VIEWS = (("stream", "Entries"), ("groups", "Groups"), ("structure", "Structure"))

CSS = (
    theme_css()
    + f"""
.bar {{ background: {BAR}; }} .bar a:not(.q-btn) {{ color: {ON_BAR}; padding: 4px 8px; }}
.writes {{ background: {WRITES}; color: {ON_BAR}; }}
.error {{ background: {UNREACHABLE}; color: {ON_BAR}; }}
"""
    + """
.nicegui-content { padding: 0.75rem; max-width: 100rem; margin: 0 auto; align-items: stretch; }
.mono, .mono td { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.q-table__container { max-width: 100%; }
.q-table td, .q-table th { padding: 4px 10px; }
.q-table th { font-weight: 600; }
.wrap { white-space: pre-wrap; overflow-wrap: anywhere; }
a:not(.q-btn) { color: var(--link); text-decoration: underline; }
.warning { color: var(--warning); }
a:focus-visible, button:focus-visible, [tabindex]:focus-visible {
  outline: 2px solid #f9a825; outline-offset: 1px; }
.bar a[aria-current=page] { background: rgba(255,255,255,.2); border-radius: 4px; text-decoration: none; }
nav a[aria-current=page] { font-weight: 700; text-decoration: none; }
.sort { background: none; border: 0; font: inherit; color: inherit; cursor: pointer;
  text-decoration: underline dotted; }
.open { background: none; border: 0; font: inherit; color: inherit; cursor: pointer; padding: 0;
  text-decoration: underline; }
.muted { opacity: .75; }
.asking { min-width: min(20rem, 90vw); } .q-dialog .asking.full-width { max-width: 48rem; }
.asking .q-btn { min-width: 26px; min-height: 26px; }
.q-table .choose { width: 1px; text-align: left; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
"""
)


class PageFrame:
    """The frame of a page. The page fills `content` and calls `keep_fresh` or `load`."""

    def __init__(self, board: Board, title: str, view: str, name: bytes | None = None) -> None:
        self.board = board
        ui.page_title(f"{title} - penstock")
        ui.add_css(CSS)
        self._dark = ui.dark_mode(_dark_of(ui.context.client.request.cookies.get(DARK_COOKIE)))
        with ui.header().classes("bar items-center gap-2 q-py-xs"):
            self._links(view)
        self._error = ui.label().classes("error q-pa-sm full-width wrap")
        self._error.props('role="alert"')
        self._error.set_visibility(False)
        self._timer_may_clear = False
        if name is not None:
            self._stream_links(view, name)
        else:
            heading(title, "unseen", level=1)
        self.content = ui.element("section").props('tabindex="-1"')
        self.content.classes("view column gap-3 full-width no-wrap items-stretch")
        ui.skip_link("Skip to content", target=self.content)

    def _links(self, view: str) -> None:
        with ui.element("nav").props('aria-label="pages"').classes("row items-center gap-1"):
            for target, text in (("streams", "Streams"), ("pipeline", "Pipeline")):
                _nav_link(text, link(target), current=view == target)
        ui.space()
        if self.board.settings.allow_writes:
            ui.label("writes allowed").classes("writes q-px-sm rounded-borders")
        ui.label(self.board.server.name).classes("mono gt-xs").tooltip("connected server")
        ui.button(icon="contrast", on_click=self._turn_dark).props(
            'flat dense color=white aria-label="switch between light and dark"'
        )

    def _stream_links(self, view: str, name: bytes) -> None:
        with ui.row().classes("items-baseline gap-3 full-width"):
            heading(harmless(name), "text-h6 mono wrap", level=1)
            with ui.element("nav").props('aria-label="pages of this stream"').classes("row gap-3"):
                for target, text in STREAM_VIEWS:
                    _nav_link(text, link(target, name), current=view == target)

    def _turn_dark(self) -> None:
        now = not self._dark.value
        self._dark.set_value(now)
        ui.run_javascript(
            f"document.cookie='{DARK_COOKIE}={int(now)};path=/;max-age=31536000;samesite=lax'"
        )

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
        try:
            await act()
        except (ServerUnreachable, Refused, UnexpectedReply, ValueError) as error:
            is_unreachable = isinstance(error, ServerUnreachable)
            self._timer_may_clear = by_timer or is_unreachable
            more = ". The page may be out of date; retrying." if is_unreachable else ""
            self._show_error(harmless(str(error)) + more)
            return False
        return True

    async def keep_fresh(self, act: Act, seconds: float) -> None:
        """Call `act` now, and then at intervals as long as the page is open."""
        await self.attempt(act)
        ui.timer(seconds, lambda: self.renew(act), immediate=False)

    async def load(self, act: Act) -> None:
        """Call `act` once, and retry until it succeeds."""
        done = await self.attempt(act)

        async def again() -> None:
            if await self.attempt(act):
                timer.cancel()

        if not done:
            timer = ui.timer(RETRY_SECONDS, again)

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

    def _show_error(self, text: str) -> None:
        if self._error.text != text:
            self._error.set_text(text)
            self._error.set_visibility(bool(text))


def show_url(url: str) -> None:
    """Update the address bar, so that the URL can be bookmarked and shared."""
    ui.navigate.history.replace(url)


def heading(
    text: str, classes: str = "text-subtitle1 text-weight-bold", level: int = 2
) -> ui.label:
    """A heading, also for screen readers."""
    made = ui.label(text).classes(classes)
    made.props(f'role="heading" aria-level="{level}"')
    return made


def attribute(text: str) -> str:
    """Text for the quotes of a prop, which NiceGUI parses like a shell."""
    return text.replace("\\", "").replace('"', "'")


def _nav_link(text: str, target: str, current: bool) -> None:
    made = ui.link(text, target)
    if current:
        made.props('aria-current="page"')


def _dark_of(cookie: str | None) -> bool | None:
    return {"0": False, "1": True}.get(cookie or "")
