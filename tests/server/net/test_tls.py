"""TLS: clients of tls-port, certificates that are wrong or replaced, and plain text on the wrong port."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast
from urllib.request import urlopen

import pytest
import redis
from cryptography import x509
from redis.backoff import NoBackoff
from redis.retry import Retry
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.client.address import parse_url
from penstock.errors import ConfigError
from penstock.server.config import directives
from penstock.server.config import file as config_file
from penstock.server.config.settings import Config
from penstock.server.net.certificate import expiry_s_or_none
from penstock.server.net.tls import BUFFER_BYTES, Tls, client_context, rebuild, server_context
from penstock.server.net.tls_listener import TlsListener
from tests.support.certificates import Authority, Pair
from tests.support.servers.connections import ServerBench
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.redis_server import free_port

WAIT_SECONDS_MAX = 20.0


def connected(port: int, authority: Authority) -> redis.Redis:
    """A client that fails at once."""
    return redis.Redis(
        "127.0.0.1", port, ssl=True, ssl_ca_certs=str(authority.file), retry=Retry(NoBackoff(), 0)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.issue("server")


class TlsServer:
    """A penstock with a TLS port."""

    def __init__(self, server: PenstockServer, port: int, metrics_port: int = 0) -> None:
        self.server = server
        self.port = port
        self.metrics_port = metrics_port

    def wait_for(self, line: str, attempt: Callable[[], object] = lambda: None) -> None:
        """Wait until the log has a text. The attempt is repeated: there is one line a second."""

        def is_there() -> bool:
            attempt()
            return line in self.server.log()

        until(is_there, f"no {line!r} in the log")


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def settings(authority: Authority, pair: Pair, *more: str) -> list[str]:
    files = ["--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key)]
    return [*files, "--tls-ca-cert-file", str(authority.file), *more]


@pytest.fixture(scope="module")
def served(authority: Authority, pair: Pair) -> Iterator[TlsServer]:
    """A server that lets clients in without a certificate."""
    port, metrics_port = free_port(), free_port()
    words = settings(authority, pair, "--tls-port", str(port), "--tls-auth-clients", "optional")
    with running_penstock(*words, "--metrics-port", str(metrics_port)) as server:
        yield TlsServer(server, port, metrics_port)


def loaded(*words: str) -> Config:
    config = directives.default_config()
    config.load(config_file.read_command_line(words))
    return config


# --- Clients -----------------------------------------------------------------------------------------


def test_a_client_works_over_tls(served: TlsServer, authority: Authority) -> None:
    client = connected(served.port, authority)
    large = os.urandom(300_000)
    with client.pipeline(transaction=False) as pipe:
        for number in range(500):
            pipe.xadd("s", {"n": number})
        pipe.set("large", large)
        pipe.get("large")
        assert pipe.execute()[-1] == large
    assert client.xlen("s") == 500
    assert int(client.client_info()["tot-mem"]) > BUFFER_BYTES
    plain = served.server.client()
    assert plain.get("large") == large
    assert int(plain.client_info()["tot-mem"]) < BUFFER_BYTES
    client.close()
    plain.close()


def test_urls_of_the_command_line_and_of_spark_reach_it(
    served: TlsServer, authority: Authority
) -> None:
    url = f"rediss://127.0.0.1:{served.port}/0?ssl_ca_certs={authority.file}"
    with parse_url(url).connect(WAIT_SECONDS_MAX, WAIT_SECONDS_MAX) as client:
        client.xadd("by-url", {"k": "v"}, "1-1")
    shown = CliRunner().invoke(app, ["info", "--url", url, "by-url"])
    assert (shown.exit_code, "1-1" in shown.output) == (0, True), shown.output


def test_the_log_shows_the_address_of_tls(served: TlsServer) -> None:
    assert f"rediss://127.0.0.1:{served.port}" in served.server.log()
    assert f"127.0.0.1:{served.port} (TLS)" in served.server.log()


def test_a_client_does_not_accept_another_name_or_authority(
    served: TlsServer, authority: Authority, folder: Path
) -> None:
    other = Authority(folder, "other-authority")

    def attempt() -> None:
        with pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            connected(served.port, other).ping()

    served.wait_for("is refused: tlsv1 alert unknown ca", attempt)
    wrong = ssl.create_default_context(cafile=str(authority.file))
    with (
        socket.create_connection(("127.0.0.1", served.port)) as plain,
        pytest.raises(ssl.CertificateError, match="not valid for"),
    ):
        wrong.wrap_socket(plain, server_hostname="example.com")


def test_plain_text_on_the_tls_port_is_refused(served: TlsServer) -> None:
    address = ("127.0.0.1", served.port)

    def attempt() -> None:
        with socket.create_connection(address, timeout=WAIT_SECONDS_MAX) as client:
            client.sendall(b"*1\r\n$4\r\nPING\r\n")
            assert b"PONG" not in _rest(client)

    served.wait_for("it does not speak TLS. Plain text belongs to `port`", attempt)


def test_tls_on_the_plain_port_is_refused(served: TlsServer, authority: Authority) -> None:
    address = ("127.0.0.1", served.server.port)
    with (
        socket.create_connection(address, timeout=WAIT_SECONDS_MAX) as client,
        pytest.raises((ssl.SSLError, OSError)),
    ):
        authority.client_context().wrap_socket(client, server_hostname="127.0.0.1")
    served.wait_for("it speaks TLS, which belongs to tls-port")


def test_clients_must_have_a_certificate(authority: Authority, pair: Pair, folder: Path) -> None:
    port = free_port()
    own = authority.issue("client")
    late = authority.issue("late", expired=True)
    stranger = Authority(folder, "strangers").issue("stranger")
    with running_penstock(
        *settings(authority, pair, "--tls-port", str(port), "--port", "0")
    ) as server:
        served = TlsServer(server, port)
        assert _pong(authority.client_context(own), port)
        for refused, line in (
            (authority.client_context(), "peer did not return a certificate"),
            (authority.client_context(late), "certificate has expired"),
            (authority.client_context(stranger), "certificate verify failed"),
        ):
            served.wait_for(line, lambda context=refused: _refused(context, port))  # type: ignore[misc]


def _refused(context: ssl.SSLContext, port: int) -> None:
    assert not _pong(context, port)


def _pong(context: ssl.SSLContext, port: int) -> bool:
    """Tell whether a client gets an answer. With TLS 1.3 it learns of a refusal when it reads."""
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS_MAX) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
        ):
            client.sendall(b"PING\r\n")
            return client.recv(7) == b"+PONG\r\n"
    except (ssl.SSLError, ConnectionError):
        return False


def _rest(client: socket.socket) -> bytes:
    found = b""
    try:
        while data := client.recv(4096):
            found += data
    except ConnectionError:
        pass
    return found


# --- New certificates --------------------------------------------------------------------------------


def serial(port: int, authority: Authority) -> int:
    """The serial number of the certificate that a new connection sees."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS_MAX) as plain,
        authority.client_context().wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        about = client.getpeercert()
        assert about is not None
        return int(str(about["serialNumber"]), 16)


def test_new_certificates_are_used_without_a_restart(authority: Authority) -> None:
    port = free_port()
    pair = authority.issue("replaced")
    words = settings(authority, pair, "--tls-port", str(port), "--tls-auth-clients", "no")
    with running_penstock(*words) as server:
        served = TlsServer(server, port)
        before = serial(port, authority)
        old = connected(port, authority)
        assert old.ping()
        pair.key.write_text("not a key")
        served.wait_for("the files have changed, but cannot be used")
        assert serial(port, authority) == before
        authority.issue("replaced")
        served.wait_for("new certificates are in use")
        assert serial(port, authority) != before
        assert old.ping()
        # CONFIG SET of the same paths reads the files again, both or none.
        plain = server.client()
        other = authority.issue("other")
        with pytest.raises(redis.ResponseError, match="key values mismatch"):
            plain.config_set("tls-cert-file", str(other.certificate))
        now = serial(port, authority)
        both = {"tls-cert-file": str(other.certificate), "tls-key-file": str(other.key)}
        plain.config_set(*sum(both.items(), ()))
        assert serial(port, authority) != now
        old.close()
        plain.close()


# --- Settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"--tls-cert-file": ""}, "tls-cert-file is missing"),
        ({"--tls-cert-file": "/nowhere"}, "No such file"),
        ({"--tls-key-file": "/nowhere"}, "No such file"),
        ({"--tls-ca-cert-file": ""}, "set tls-auth-clients no"),
        ({"--tls-ca-cert-file": "/nowhere"}, "No such file"),
        ({"--tls-ciphers": "none-such"}, "no such cipher"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    authority: Authority, pair: Pair, change: dict[str, str], problem: str
) -> None:
    words = settings(authority, pair)
    for name, value in change.items():
        words += [name, value]
    with pytest.raises(ConfigError, match=problem):
        Tls(loaded(*words))


def test_a_change_is_taken_back_although_the_old_files_cannot_be_used_any_more(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    own = authority.issue("own")
    config = loaded(*settings(authority, own), "--appendonly", "no")
    saves, server = config.shown("save"), ServerBench().server
    config.attach(server)
    server.tls = Tls(config)
    context = server.tls.context
    own.key.write_text("damaged")
    with pytest.raises(ConfigError, match=r"own\.key") as refused:
        config.change({"save": ((1, 1),), "tls-protocols": ("TLSv1.2",)})
    assert refused.value.args[1] == "tls-protocols"
    assert (config.value("tls-protocols"), config.shown("save")) == ((), saves)
    assert server.tls.context is context
    assert "the old value of tls-protocols cannot be put in force again" in caplog.text
    own = authority.issue("own")
    config.change({"tls-protocols": ("TLSv1.2",)})
    assert server.tls.context.maximum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--tls-protocols", "SSLv3"], "Invalid tls-protocols"),
        (["--tls-ciphersuites", "TLS_AES_128_GCM_SHA256"], "Python cannot choose"),
        (["--tls-auth-clients", "maybe"], "must be one of"),
    ],
)
def test_values_that_make_no_sense_are_refused(words: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        loaded(*words)


def test_a_key_may_have_a_password(authority: Authority) -> None:
    pair = authority.issue("locked", password=b"sesame")
    assert server_context(loaded(*settings(authority, pair, "--tls-key-file-pass", "sesame")))
    with pytest.raises(ConfigError):
        server_context(loaded(*settings(authority, pair)))


def test_versions_and_tickets_follow_the_settings(authority: Authority, pair: Pair) -> None:
    words = settings(authority, pair, "--tls-protocols", "TLSv1.2", "--tls-session-caching", "no")
    context = server_context(loaded(*words, "--tls-prefer-server-ciphers", "yes"))
    assert context.minimum_version == context.maximum_version == ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_TICKET
    assert context.options & ssl.OP_CIPHER_SERVER_PREFERENCE
    assert (
        server_context(loaded(*settings(authority, pair))).maximum_version == ssl.TLSVersion.TLSv1_3
    )


def test_connections_to_other_servers_verify_them(
    served: TlsServer, authority: Authority, pair: Pair, folder: Path
) -> None:
    own = authority.issue("own")
    words = ["--tls-client-cert-file", str(own.certificate), "--tls-client-key-file", str(own.key)]
    assert _pong(client_context(loaded(*settings(authority, pair, *words))), served.port)
    other = Authority(folder, "unknown")
    assert not _pong(client_context(loaded(*settings(other, pair))), served.port)
    with pytest.raises(ConfigError, match="cannot be verified"):
        client_context(loaded())


# --- Memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_closed_connections_leave_no_memory_behind(
    loop: str, authority: Authority, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's garbage collector is off: a cycle for each connection would be a leak."""
    if loop == "asyncio":
        (tmp_path / "uvloop.py").write_text("raise ImportError\n")
        paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    port = free_port()
    context = authority.client_context()

    def connect(count: int) -> None:
        for _ in range(count):
            assert _pong(context, port)
            with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS_MAX) as client:
                client.sendall(b"PING\r\n")  # the handshake fails
                _rest(client)

    words = settings(authority, pair, "--tls-port", str(port), "--tls-auth-clients", "no")
    with running_penstock(*words) as server, server.client() as plain:
        assert ("uvloop is not installed" in server.log()) == (loop == "asyncio")
        connect(20)
        before = int(str(plain.info("memory")["used_memory_rss"]))
        connect(60)
        grown = int(str(plain.info("memory")["used_memory_rss"])) - before
    assert grown < 60 * BUFFER_BYTES // 8


def test_a_client_that_is_gone_before_the_handshake_is_reported_and_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> socket.socket:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            client = socket.create_connection(listening.getsockname())
            connected, _ = listening.accept()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()  # a reset
            server = ServerBench().server
            tls = cast("Tls", None)  # it is not asked for
            await TlsListener(listening, server, tls, asyncio.Protocol)._shake_hands(connected)
            return connected

    assert asyncio.run(run()).fileno() == -1
    assert "tls-port: client ? is refused: it broke off the handshake" in caplog.text


# --- The end of a certificate ------------------------------------------------------------------------


def test_the_end_of_a_certificate_is_what_openssl_says(authority: Authority, pair: Pair) -> None:
    for path in (pair.certificate, authority.file):
        found = x509.load_pem_x509_certificate(path.read_bytes())
        assert expiry_s_or_none(str(path)) == int(found.not_valid_after_utc.timestamp())
    assert expiry_s_or_none(str(pair.key)) is None
    assert expiry_s_or_none("/no such file") is None


def test_a_damaged_certificate_has_no_end(tmp_path: Path, pair: Pair) -> None:
    der = ssl.PEM_cert_to_DER_cert(pair.certificate.read_text())
    file = tmp_path / "damaged.crt"
    for size in range(0, len(der), 7):
        file.write_text(ssl.DER_cert_to_PEM_cert(der[:size]))
        expiry_s_or_none(str(file))
    file.write_text(ssl.DER_cert_to_PEM_cert(der[:60]))
    assert expiry_s_or_none(str(file)) is None


def test_a_certificate_that_ends_soon_is_reported_every_day(
    authority: Authority, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    tls = Tls(loaded(*settings(authority, pair)))
    assert tls.expires_s is not None
    day_s = 86_400
    caplog.set_level("WARNING")
    for days_left, lines in ((15, 0), (14, 1), (13.5, 1), (13, 2), (-1, 3), (-1.5, 3)):
        tls.look(int(tls.expires_s - days_left * day_s))
        assert len(caplog.messages) == lines, days_left
    assert "expires at 20" in caplog.messages[0]
    assert "has expired" in caplog.messages[-1]
    rebuild([tls])
    tls.look(tls.expires_s - 13 * day_s)
    assert len(caplog.messages) == 4


def test_a_server_reports_the_end_of_its_certificate(served: TlsServer) -> None:
    info = cast("dict[str, int]", served.server.client().info("penstock"))
    expires_s = info["penstock_tls_expiry_sec"]
    assert 0 < expires_s - time.time() <= 86_400
    with urlopen(f"http://127.0.0.1:{served.metrics_port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    assert f"penstock_tls_expiry_timestamp_seconds {expires_s}" in lines
    served.wait_for(time.strftime("expires at %Y-%m-%d %H:%M UTC", time.gmtime(expires_s)))
