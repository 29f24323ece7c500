"""Access checks."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import pytest

from penstock.metrics.loopback import is_loopback
from penstock.web.http import auth as module
from penstock.web.http import sessions
from penstock.web.http.auth import (
    COOKIE,
    Gate,
    Message,
    Receive,
    Scope,
    Send,
    own_path,
    proxy_options,
)
from penstock.web.http.guesses import AT_ONCE_MAX, peer_of
from penstock.web.http.sessions import Role, Session, session_of
from penstock.web.metrics import RequestCounter, Requests
from tests.support.servers.loops import run_apart

Answer = tuple[int, dict[str, str], bytes]


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """The application behind the gate."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def visit(
    gate: Gate | RequestCounter,
    path: str = "/",
    method: str = "GET",
    body: bytes = b"",
    **headers: str,
) -> Answer:
    """Send one request through the gate."""
    given = {"host": "127.0.0.1:8379"} | headers
    scope = {
        "type": "http",
        "method": method,
        "path": path.partition("?")[0],
        "query_string": path.partition("?")[2].encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }
    return _run(gate, scope, body)


def _run(gate: Gate | RequestCounter, scope: Scope, body: bytes = b"") -> Answer:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    run_apart(gate(scope, receive, send))
    if sent[0]["type"] == "websocket.close":
        return 403, {}, b""
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message["body"] for message in sent[1:])


@pytest.fixture(autouse=True)
def _no_penalty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRONG_SECONDS", 0)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "[::1]:8379", "127.9.9.9"])
def test_loopback_names_are_accepted(host: str) -> None:
    assert visit(Gate(inside), host=host)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "["])
def test_a_foreign_name_that_resolves_to_loopback_is_refused(host: str) -> None:
    assert visit(Gate(inside), host=host)[0] == 421
    assert not is_loopback(host)


def test_a_page_of_another_site_can_neither_post_nor_open_a_websocket() -> None:
    gate = Gate(inside)
    assert visit(gate, method="POST", origin="http://evil.example")[0] == 403
    assert visit(gate, method="POST", origin="http://127.0.0.1:8379")[0] == 200
    headers = [(b"host", b"127.0.0.1:8379"), (b"origin", b"http://evil.example")]
    assert _run(gate, {"type": "websocket", "path": "/", "headers": headers})[0] == 403


def test_the_fallback_of_a_websocket_is_refused_to_other_sites() -> None:
    gate = Gate(inside)
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    assert visit(gate, path, origin="http://evil.example")[0] == 403
    assert visit(gate, path, origin="http://127.0.0.1:8379")[0] == 200
    assert visit(gate, path)[0] == 200


def test_an_invalid_origin_is_refused() -> None:
    assert visit(Gate(inside), method="POST", origin="http://[")[0] == 403


def test_without_the_password_only_the_form_is_served() -> None:
    gate = Gate(inside, "secret")
    status, headers, _ = visit(gate, "/stream?name=a%20b&at=1-0", host="box:8379")
    assert (status, headers["location"]) == (
        303,
        "/login?next=%2Fstream%3Fname%3Da%2520b%26at%3D1-0",
    )
    status, _, body = visit(gate, headers["location"])
    assert status == 200
    assert b'value="/stream?name=a%20b&amp;at=1-0"' in body
    assert visit(gate, method="POST")[0] == 401
    headers_of_socket = [(b"host", b"box:8379")]
    assert _run(gate, {"type": "websocket", "path": "/", "headers": headers_of_socket})[0] == 403
    assert visit(gate, cookie=f"{COOKIE}=guess")[0] == 303


def test_the_password_gives_access() -> None:
    gate = Gate(inside, "secret")
    wrong = urlencode({"password": "Secret", "next": "/streams"}).encode()
    status, headers, body = visit(gate, "/login", "POST", wrong)
    assert (status, "set-cookie" in headers) == (401, False)
    assert b"Wrong password" in body
    right = urlencode({"password": "secret", "next": "/streams"}).encode()
    status, headers, _ = visit(gate, "/login", "POST", right)
    assert (status, headers["location"]) == (303, "/streams")
    assert "HttpOnly" in headers["set-cookie"]
    assert "secret" not in headers["set-cookie"]
    cookie = headers["set-cookie"].partition(";")[0]
    status, headers, body = visit(gate, "/streams", cookie=cookie)
    assert (status, body) == (200, b"inside")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert visit(Gate(inside, "secret"), "/streams", cookie=cookie)[0] == 303


@pytest.mark.parametrize(
    "cookies", ["flag; {}", "{}; a", "a=b=c;{}", 'odd="; {}; x[]=1', "{0}x; {0}"]
)
def test_malformed_cookies_do_no_harm(cookies: str) -> None:
    gate = Gate(inside, "secret")
    _, headers, _ = visit(gate, "/login", "POST", urlencode({"password": "secret"}).encode())
    own = headers["set-cookie"].partition(";")[0]
    assert visit(gate, cookie=cookies.format(own))[0] == 200


def test_attempts_from_one_address_are_checked_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate(inside, "secret")
    seen: list[int] = []

    async def meanwhile(seconds: float) -> None:
        """While the gate waits, another attempt with the right password arrives."""
        seen.append(await guess("1.2.3.4", "secret"))
        seen.append(await guess("1.2.3.5", "secret"))

    async def guess(address: str, password: str) -> int:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": urlencode({"password": password}).encode()}

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"host", b"box:8379")]
        about = {"type": "http", "method": "POST", "path": "/login", "client": (address, 1)}
        await gate({**about, "headers": headers}, receive, send)
        return int(sent[0]["status"])

    monkeypatch.setattr(asyncio, "sleep", meanwhile)

    async def all_of_it() -> None:
        seen.append(await guess("1.2.3.4", "wrong"))
        seen.append(await guess("1.2.3.4", "secret"))

    run_apart(all_of_it())
    assert seen == [429, 303, 401, 303]


class Guesser:
    """Sends attempts through uvicorn's proxy middleware to the gate."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *proxies: str) -> None:
        uvicorn = pytest.importorskip("uvicorn")
        config = uvicorn.Config(
            Gate(inside, "secret"), log_config=None, lifespan="off", **proxy_options(proxies)
        )
        config.load()
        self._app = config.loaded_app
        self._release = asyncio.Event()
        self._paying = 0
        monkeypatch.setattr(asyncio, "sleep", self._pay)

    async def _pay(self, seconds: float) -> None:
        self._paying += 1
        await self._release.wait()

    async def guess(self, peer: str, forwarded: str, password: str) -> int:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": urlencode({"password": password}).encode()}

        async def send(message: Message) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1:8379"), (b"x-forwarded-for", forwarded.encode())]
        about = {"type": "http", "method": "POST", "path": "/login", "client": (peer, 1)}
        await self._app({**about, "headers": headers}, receive, send)
        return int(sent[0]["status"])

    async def during(self, wrong: list[tuple[str, str]], right: tuple[str, str]) -> int:
        """The status for the right password while these peers wait after wrong ones."""
        tasks = [asyncio.create_task(self.guess(*peer, "wrong")) for peer in wrong]
        while self._paying < len(wrong):
            await _TURN(0)
        answer = await self.guess(*right, "secret")
        self._release.set()
        await asyncio.gather(*tasks)
        return answer


_TURN = asyncio.sleep


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "10.0.0.9"])
def test_a_forged_forwarded_address_does_not_evade_the_penalty(
    monkeypatch: pytest.MonkeyPatch, peer: str
) -> None:
    guesser = Guesser(monkeypatch)
    assert run_apart(guesser.during([(peer, "1.1.1.1")], (peer, "2.2.2.2"))) == 429


def test_behind_a_trusted_proxy_each_client_has_its_own_penalty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = "10.0.0.9"
    wrong = [(proxy, "1.1.1.1")]
    guesser = Guesser(monkeypatch, "10.0.0.0/24")
    assert run_apart(guesser.during(wrong, (proxy, "2.2.2.2"))) == 303
    guesser = Guesser(monkeypatch, proxy)
    assert run_apart(guesser.during(wrong, (proxy, "6.6.6.6, 1.1.1.1"))) == 429
    guesser = Guesser(monkeypatch, proxy)
    assert run_apart(guesser.during([("127.0.0.1", "1.1.1.1")], ("127.0.0.1", "2.2.2.2"))) == 429


def test_attempts_from_many_addresses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [(f"10.0.0.{number}", "") for number in range(AT_ONCE_MAX)]
    last = ("10.0.1.1", "")
    assert run_apart(Guesser(monkeypatch).during(wrong[:-1], last)) == 303
    assert run_apart(Guesser(monkeypatch).during(wrong, last)) == 429


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::9", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
        ("a socket", "a socket"),
    ],
)
def test_an_ipv6_prefix_is_one_peer(address: str, peer: str) -> None:
    assert peer_of(address) == peer


@pytest.mark.parametrize(
    "target",
    ["http://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "//["],
)
def test_the_form_does_not_redirect_to_other_sites(target: str) -> None:
    assert own_path(target) == "/"


def log_in(gate: Gate, password: str) -> str:
    """The cookie of a login."""
    status, headers, _ = visit(gate, "/login", "POST", urlencode({"password": password}).encode())
    assert status == 303
    return headers["set-cookie"].partition(";")[0]


def test_each_password_gives_its_role() -> None:
    seen: list[Role] = []

    async def remember(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(session_of(scope).role)
        await inside(scope, receive, send)

    gate = Gate(remember, "secret", "look")
    for password in ("secret", "look"):
        assert visit(gate, "/streams", cookie=log_in(gate, password))[0] == 200
    visit(Gate(remember))
    assert seen == [Role.OPERATOR, Role.VIEWER, Role.OPERATOR]
    assert session_of({}).role is Role.VIEWER


def test_a_viewer_can_log_in_again_as_an_operator() -> None:
    gate = Gate(inside, "secret", "look")
    status, _, body = visit(gate, "/login", cookie=log_in(gate, "look"))
    assert (status, b"Dashboard password" in body) == (200, True)


def test_a_logout_ends_the_session_everywhere() -> None:
    found: list[Session] = []

    async def remember(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(session_of(scope))
        await inside(scope, receive, send)

    gate = Gate(remember, "secret")
    cookie, other = log_in(gate, "secret"), log_in(gate, "secret")
    visit(gate, "/streams", cookie=cookie)
    status, headers, _ = visit(gate, "/logout", cookie=cookie)
    assert (status, headers["location"]) == (303, "/login")
    assert "Max-Age=0" in headers["set-cookie"]
    assert visit(gate, "/streams", cookie=cookie)[0] == 303
    assert not found[0].may_change
    assert visit(gate, "/streams", cookie=other)[0] == 200


def test_the_oldest_session_ends_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 2)
    gate = Gate(inside, "secret")
    first, *others = (log_in(gate, "secret") for _ in range(3))
    assert visit(gate, cookie=first)[0] == 303
    assert [visit(gate, cookie=other)[0] for other in others] == [200, 200]


def test_viewers_do_not_push_out_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_MAX", 2)
    gate = Gate(inside, "secret", "look")
    operator = log_in(gate, "secret")
    viewers = [log_in(gate, "look") for _ in range(3)]
    assert visit(gate, cookie=operator)[0] == 200
    assert [visit(gate, cookie=viewer)[0] for viewer in viewers] == [303, 200, 200]


def test_a_session_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(inside, "secret")
    cookie = log_in(gate, "secret")
    monkeypatch.setattr(sessions, "SECONDS_MAX", 0)
    over = log_in(gate, "secret")
    assert [visit(gate, cookie=one)[0] for one in (cookie, over)] == [200, 303]


def test_a_login_ends_the_session_that_it_replaces() -> None:
    found: list[Session] = []

    async def remember(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(session_of(scope))
        await inside(scope, receive, send)

    gate = Gate(remember, "secret", "look")
    operator = log_in(gate, "secret")
    visit(gate, cookie=operator)
    wrong = urlencode({"password": "Secret"}).encode()
    assert visit(gate, "/login", "POST", wrong, cookie=operator)[0] == 401
    may_change = found[0].may_change
    assert may_change
    right = urlencode({"password": "look"}).encode()
    assert visit(gate, "/login", "POST", right, cookie=operator)[0] == 303
    assert not found[0].may_change
    assert visit(gate, cookie=operator)[0] == 303


def test_a_request_that_fails_is_counted_and_answered_without_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("a secret of the server")

    counted = Requests()
    app = RequestCounter(Gate(fail), counted)
    status, headers, body = visit(app, "/streams")
    assert (status, headers["content-type"]) == (500, "text/plain")
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert b"secret" not in body
    assert "a secret of the server" in caplog.text
    assert counted.codes == {500: 1}
