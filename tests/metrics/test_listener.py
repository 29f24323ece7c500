"""The HTTP listener answers GET, refuses everything else, and survives strangers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from penstock.errors import ConfigError
from penstock.metrics import listener
from penstock.metrics.listener import Answer
from penstock.metrics.threaded import ThreadedListener


async def good() -> Answer:
    return Answer("fine\n")


async def long() -> Answer:
    return Answer([b"piece %d\n" % number for number in range(3)])


async def bad() -> Answer:
    raise ValueError("a fault")


@pytest.fixture
def served() -> Iterator[ThreadedListener]:
    made = ThreadedListener({"/good": good, "/long": long, "/bad": bad}, 0)
    yield made
    made.close()


def ask(served: ThreadedListener, method: str, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request(method, path)
    found = connection.getresponse()
    status, body = found.status, found.read()
    connection.close()
    return status, body


def send(served: ThreadedListener, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as link:
        link.sendall(data)
        link.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: link.recv(4096), b""))


def test_paths_are_answered(served: ThreadedListener, caplog: pytest.LogCaptureFixture) -> None:
    assert ask(served, "GET", "/good") == (200, b"fine\n")
    assert ask(served, "GET", "/good?a=1") == (200, b"fine\n")
    assert ask(served, "GET", "/long") == (200, b"piece 0\npiece 1\npiece 2\n")
    assert ask(served, "GET", "/other") == (404, b"not found; there are /bad, /good, /long\n")
    assert ask(served, "POST", "/good")[0] == 405
    assert ask(served, "GET", "/bad") == (500, b"failed; see the log\n")
    assert "cannot answer /bad: a fault" in caplog.text


@pytest.mark.parametrize("data", [b"", b"GET /good HTTP/1.1\r\n", b"PING\r\n\r\n", b"\x16\x03\x01"])
def test_what_is_no_request_is_refused(served: ThreadedListener, data: bytes) -> None:
    assert send(served, data).startswith(b"HTTP/1.1 400 ")
    assert ask(served, "GET", "/good")[0] == 200


def test_a_long_request_is_refused(served: ThreadedListener) -> None:
    data = b"GET /good HTTP/1.1\r\nX: " + b"x" * (4 * listener.HEAD_BYTES_MAX)
    try:
        answer = send(served, data)
    except ConnectionError:  # the rest was not read
        answer = b""
    assert not answer or answer.startswith(b"HTTP/1.1 431 ")
    assert ask(served, "GET", "/good")[0] == 200


def test_too_many_connections_are_refused(
    served: ThreadedListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "CONNECTIONS_MAX", 1)
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as waiting:
        waiting.sendall(b"GET /good HTTP/1.1\r\n")
        assert ask(served, "GET", "/good") == (503, b"too many connections\n")
        waiting.sendall(b"\r\n")
        assert waiting.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_a_port_in_use_is_an_error(served: ThreadedListener) -> None:
    with pytest.raises(ConfigError, match=f"cannot serve metrics on port {served.port}"):
        ThreadedListener({}, served.port)
    with pytest.raises(ConfigError, match="cannot serve metrics on port 70000"):
        ThreadedListener({}, 70000)


def status_for(port: int, *hosts: str) -> int:
    """The status of a request with these Host headers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest("GET", "/good", skip_host=True)
    for host in hosts:
        connection.putheader("host", host)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_foreign_name_that_resolves_to_loopback_is_refused(served: ThreadedListener) -> None:
    for host in ("evil.example", f"evil.example:{served.port}", "10.0.0.1", "[", ""):
        assert status_for(served.port, host) == 421
    assert status_for(served.port, "localhost", "evil.example") == 421
    for host in ("localhost", f"127.0.0.1:{served.port}", "[::1]:9100"):
        assert status_for(served.port, host) == 200
    assert status_for(served.port) == 200  # no browser


def test_an_open_bind_answers_for_every_name() -> None:
    served = ThreadedListener({"/good": good}, 0, "0.0.0.0")
    assert status_for(served.port, "metrics.example:9100") == 200
    served.close()
