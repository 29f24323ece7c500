"""Checks every request and websocket before a page handles it.

  host      without a password, only requests to a loopback name are accepted. Otherwise a foreign page whose
            name resolves to 127.0.0.1 (DNS rebinding) could read data through the user's browser
  origin    a websocket, its fallback, and a request other than GET must come from a page of the dashboard:
            browsers let any page open a websocket to any host
  password  if one is set, requests need the cookie that /login sets. A second password is for viewers, who
            may change nothing. The session of a request is in its scope (sessions.py)

Response headers limit the pages: nothing is loaded from or sent to other hosts, and no other site may show a
page in a frame, where clicks could be stolen. A request that fails gets a plain answer with these headers
too; the error is only logged.

The cookie holds a random token that is valid until /logout, or as long as the process runs. Passwords are
compared in constant time, and a wrong one costs the peer a second (guesses.py). Nothing about passwords is
logged. The peer is the other end of the connection. X-Forwarded-For is used only if the connection comes from
a trusted proxy (proxy_options), because any client can send that header, also from loopback.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from penstock.metrics.loopback import is_loopback
from penstock.web.http.guesses import Guesses, peer_of
from penstock.web.http.plain_page import login_page
from penstock.web.http.sessions import SCOPE_KEY, Role, Session, Sessions

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# NiceGUI compiles templates in the browser and has inline scripts, so it needs the two "unsafe" options.
POLICY = (
    b"default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval';"
    b" style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self';"
    b" frame-ancestors 'none'; base-uri 'self'; form-action 'self'; object-src 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
)
COOKIE = "penstock-dashboard"
LOGIN, LOGOUT = "/login", "/logout"
SOCKET = "/_nicegui_ws/"
FORM_BYTES_MAX = 4096
WRONG_SECONDS = 1.0
FAILED = b"The dashboard failed to answer; its log says more.\n"

_LOG = logging.getLogger("penstock.web")


class Gate:
    """ASGI middleware around the whole dashboard."""

    def __init__(self, app: App, password: str = "", viewer_password: str = "") -> None:
        """`password` is that of operators."""
        self._app = app
        self._password = password.encode()
        self._passwords = {Role.OPERATOR: self._password}
        if viewer_password:
            self._passwords[Role.VIEWER] = viewer_password.encode()
        self._sessions = Sessions()
        self._guesses = Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        has_begun = False

        async def send_marked(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            await self._pass(scope, receive, send_marked)
        except Exception:
            if scope["type"] != "http" or has_begun:
                raise
            _LOG.exception("cannot answer %s", scope["path"])
            await _answer(send_marked, 500, FAILED, [(b"content-type", b"text/plain")])

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if not self._password and not is_loopback(headers.get("host", "")):
            await _deny(
                scope, send, 421, "without a password, use localhost or 127.0.0.1 as the host"
            )
        elif not _is_own_origin(scope, headers):
            await _deny(scope, send, 403, "this request comes from another site")
        elif not self._password:
            scope[SCOPE_KEY] = Session(Role.OPERATOR)
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == LOGIN:
            await self._login(scope, headers, receive, send)
        elif scope["type"] == "http" and scope["path"] == LOGOUT:
            await self._logout(headers, send)
        elif (session := self._session(headers)) is not None:
            scope[SCOPE_KEY] = session
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET":
            query = scope.get("query_string", b"").decode("latin-1")
            target = quote(scope["path"] + (f"?{query}" if query else ""), safe="")
            await _answer(send, 303, b"", [(b"location", f"{LOGIN}?next={target}".encode())])
        else:
            await _deny(scope, send, 401, "log in first")

    def _session(self, headers: dict[str, str]) -> Session | None:
        found = (self._sessions.find(token) for token in _tokens(headers))
        return next((session for session in found if session is not None), None)

    def _end_sessions(self, headers: dict[str, str]) -> None:
        for token in _tokens(headers):
            self._sessions.end(token)

    async def _logout(self, headers: dict[str, str], send: Send) -> None:
        self._end_sessions(headers)
        cookie = f"{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        where = (b"location", LOGIN.encode())
        await _answer(send, 303, b"", [where, (b"set-cookie", cookie.encode())])

    def _role_or_none(self, password: bytes) -> Role | None:
        """The role that a password gives. All are compared, so that the time tells nothing."""
        fits = [
            role for role, known in self._passwords.items() if hmac.compare_digest(password, known)
        ]
        return fits[0] if fits else None

    async def _login(
        self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send
    ) -> None:
        """Serve the form, or begin a session, which replaces that of the same browser."""
        if scope["method"] != "POST":
            target = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("next", ["/"])[
                0
            ]
            await _answer(send, 200, login_page(own_path(target), ""))
            return
        given = parse_qs((await _body(receive)).decode("utf-8", "replace"))
        password = given.get("password", [""])[0].encode()
        target = given.get("next", ["/"])[0]
        peer = peer_of((scope.get("client") or ("",))[0])
        if not self._guesses.may_guess(peer):
            text = "Too many attempts: wait a second and try again."
            await _answer(send, 429, login_page(own_path(target), text))
            return
        role = self._role_or_none(password)
        if role is None:
            with self._guesses.paying(peer):
                await asyncio.sleep(WRONG_SECONDS)
            await _answer(send, 401, login_page(own_path(target), "Wrong password."))
            return
        self._end_sessions(headers)
        cookie = f"{COOKIE}={self._sessions.begin(role)}; Path=/; HttpOnly; SameSite=Lax"
        if scope.get("scheme") == "https":
            cookie += "; Secure"
        where = (b"location", own_path(target).encode())
        await _answer(send, 303, b"", [where, (b"set-cookie", cookie.encode())])


def proxy_options(proxies: Sequence[str]) -> dict[str, Any]:
    """Options for uvicorn, which by default trusts every client on loopback as a proxy."""
    return {"proxy_headers": bool(proxies), "forwarded_allow_ips": list(proxies)}


def own_path(target: str) -> str:
    """The path to redirect to, or / if the target is on another site."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return "/"
    if (
        parts.scheme
        or parts.netloc
        or not target.startswith("/")
        or target.startswith(("//", "/\\"))
    ):
        return "/"
    return quote(target, safe="/?&=%:+,;@!$'()*~-._")


def _is_own_origin(scope: Scope, headers: dict[str, str]) -> bool:
    reads = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
    if reads and not scope["path"].startswith(SOCKET):
        return True
    origin = headers.get("origin")
    # Browsers send Origin with every websocket and form. Other programs do not run code of foreign pages.
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        return False


def _tokens(headers: dict[str, str]) -> list[str]:
    """Parse cookies by hand: the library stops at a malformed one, which another program may have set."""
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return [value for name, _, value in pairs if name == COOKIE]


async def _body(receive: Receive) -> bytes:
    body = b""
    while len(body) <= FORM_BYTES_MAX:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return body


async def _deny(scope: Scope, send: Send, status: int, text: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await _answer(send, status, text.encode(), [(b"content-type", b"text/plain")])


async def _answer(
    send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    headers = headers or [(b"content-type", b"text/html; charset=utf-8")]
    start = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
