"""The dashboard with a certificate."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

from typer.testing import CliRunner

from penstock.cli.main import app
from tests.support.certificates import Authority
from tests.support.replication.links import eventually
from tests.support.servers.dashboard import running_dashboard
from tests.support.servers.redis_server import free_port


def test_the_dashboard_serves_https(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("ui")
    files = ["--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key)]
    url = f"redis://127.0.0.1:{free_port()}"  # no server is needed to log in
    with running_dashboard(url, *files, PENSTOCK_UI_PASSWORD="sesame") as dashboard:
        request = urllib.request.Request(f"{dashboard.address}/login", b"password=sesame")
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=authority.client_context()), NoRedirect()
        )
        with opener.open(request, timeout=30) as answer:
            assert answer.status == 303
            assert answer.headers["set-cookie"].endswith("; Secure")
        assert "dashboard at https://127.0.0.1:" in dashboard.log()


def serial_of(port: int, authority: Authority) -> str:
    """The number of the certificate that the dashboard shows to a new client."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        authority.client_context().wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        found = secure.getpeercert()
        assert found is not None
        return str(found["serialNumber"])


def test_a_certificate_is_replaced_while_the_dashboard_runs(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("ui")
    files = ["--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key)]
    url = f"redis://127.0.0.1:{free_port()}"
    with running_dashboard(url, *files, PENSTOCK_UI_PASSWORD="sesame") as dashboard:
        first = serial_of(dashboard.port, authority)
        pair.certificate.write_text("broken")
        eventually(lambda: "cannot be used, the old one stays" in dashboard.log())
        assert serial_of(dashboard.port, authority) == first
        authority.issue("ui")
        eventually(lambda: serial_of(dashboard.port, authority) != first)
        assert "the certificate was replaced" in dashboard.log()


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["ui", "--tls-key-file", "x"])
    assert made.exit_code == 2
    made = CliRunner().invoke(app, ["ui", "--tls-cert-file", str(tmp_path / "none")])
    assert "No such file" in made.output
    (tmp_path / "bad").write_text("bad")
    made = CliRunner().invoke(app, ["ui", "--tls-cert-file", str(tmp_path / "bad")])
    assert "is not a certificate with its key" in made.output


class NoRedirect(urllib.request.HTTPErrorProcessor):
    """Returns every answer as it is."""

    def http_response(self, request, response):  # type: ignore[no-untyped-def]
        return response

    https_response = http_response
