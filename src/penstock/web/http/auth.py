"""Who may come in: checked for every request and every websocket before a page sees it.

  host      without a password only requests for a loopback name get through, so that a stranger's page whose
            name was pointed at 127.0.0.1 (DNS rebinding) cannot read through somebody's browser
  origin    a websocket, what stands in for one, and a request that is not GET, must come from a page of our
            own: browsers let any page open a websocket to anywhere
  password  where one is set, a cookie that /login gave out

And what every page may do, as headers: nothing is loaded from elsewhere, nothing is sent elsewhere, and no
other page may put ours into a frame, where a click could be stolen.

The cookie holds a random word that lives as long as the process. Passwords are compared in constant time,
and a wrong one costs its peer a second (guesses.py); nothing of it is logged. The peer is the other end of
the connection. X-Forwarded-For is read only if the connection comes from a proxy that was named
(proxy_options): anybody can send that header, also from loopback.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from penstock.web.board import LOOPBACK
from penstock.web.http.guesses import Guesses, peer_of
from penstock.web.http.plain_page import login_page

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# NiceGUI compiles its templates in the browser and writes its start into the page: hence the two "unsafe".
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
LOGIN = "/login"
SOCKET = "/_nicegui_ws/"
FORM_BYTES_MAX = 4096
WRONG_SECONDS = 1.0


class Gate:
    """ASGI middleware around the whole of the dashboard."""

    def __init__(self, app: App, password: str = "") -> None:
        self._app = app
        self._password = password.encode()
        self._token = secrets.token_urlsafe(32)
        self._guesses = Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        await self._pass(scope, receive, send_marked)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if not self._password and not is_loopback(headers.get("host", "")):
            await _deny(scope, send, 421, "this dashboard answers on loopback names only")
        elif not _is_own_origin(scope, headers):
            await _deny(scope, send, 403, "this request comes from another site")
        elif not self._password or self._has_token(headers):
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == LOGIN:
            await self._login(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET":
            query = scope.get("query_string", b"").decode("latin-1")
            target = quote(scope["path"] + (f"?{query}" if query else ""), safe="")
            await _answer(send, 303, b"", [(b"location", f"{LOGIN}?next={target}".encode())])
        else:
            await _deny(scope, send, 401, "log in first")

    def _has_token(self, headers: dict[str, str]) -> bool:
        """By hand: the library gives up at the first cookie that is odd, and others set cookies here too."""
        pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        return any(
            name == COOKIE and hmac.compare_digest(value.encode(), self._token.encode())
            for name, _, value in pairs
        )

    async def _login(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            text = "A wrong password came just now: wait a second."
            await _answer(send, 429, login_page(own_path(target), text))
            return
        if not hmac.compare_digest(password, self._password):
            with self._guesses.paying(peer):
                await asyncio.sleep(WRONG_SECONDS)
            await _answer(send, 401, login_page(own_path(target), "That is not the password."))
            return
        cookie = f"{COOKIE}={self._token}; Path=/; HttpOnly; SameSite=Lax"
        where = (b"location", own_path(target).encode())
        await _answer(send, 303, b"", [where, (b"set-cookie", cookie.encode())])


def proxy_options(proxies: Sequence[str]) -> dict[str, Any]:
    """What uvicorn is told of proxies: by default it believes everybody on loopback."""
    return {"proxy_headers": bool(proxies), "forwarded_allow_ips": list(proxies)}


def is_loopback(host: str) -> bool:
    """Tell whether a Host header names this machine's loopback."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name in LOOPBACK or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def own_path(target: str) -> str:
    """The path to go on to, if it is one of ours; else the first page."""
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
    # No browser sends a websocket or a form without one; other programs are not lured by pages.
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        return False


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
