"""`supervised systemd`: a real server, and a socket that listens as systemd does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.server.config.directives import default_config
from penstock.server.supervision.systemd import Notifier, supervisor_name
from tests.support.servers.penstock_server import running_penstock

SECONDS_MAX = 30.0


class Systemd:
    """Receives the notifications of one service."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(SECONDS_MAX)
        self._socket.bind(path)

    def next(self) -> dict[str, str]:
        """The fields of the next message."""
        lines = self._socket.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def wait_for(self, field: str) -> dict[str, str]:
        """The first message with a field; messages before it are dropped."""
        while True:
            if field in (found := self.next()):
                return found

    def close(self) -> None:
        self._socket.close()


@contextmanager
def systemd(path: str) -> Iterator[Systemd]:
    made = Systemd(path)
    try:
        yield made
    finally:
        made.close()


def test_ready_alive_and_stopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    monkeypatch.setenv("WATCHDOG_USEC", "200000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    with systemd(path) as manager, running_penstock("--supervised", "systemd") as server:
        status = manager.wait_for("READY")["STATUS"]
        assert status.startswith(f"serving on 127.0.0.1:{server.port}")
        for _ in range(3):
            assert manager.next() == {"WATCHDOG": "1"}
        assert server.client().info("server")["process_supervised"] == "systemd"
        assert server.end() == 0
        assert manager.wait_for("STOPPING") == {"STOPPING": "1"}


def test_an_abstract_socket_and_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"penstock-test-{os.getpid()}"
    config = default_config()
    config.values["supervised"] = "auto"
    with systemd(f"\0{name}") as manager:
        notifier = Notifier(config, {"NOTIFY_SOCKET": f"@{name}"})
        notifier.ready("fine")
        assert manager.next() == {"READY": "1", "STATUS": "fine"}


def test_nobody_is_notified_without_systemd(caplog: pytest.LogCaptureFixture) -> None:
    config = default_config()
    config.values["supervised"] = "auto"
    Notifier(config, {}).ready("fine")
    assert caplog.text == ""
    config.values["supervised"] = "systemd"
    assert supervisor_name(config, {}) == "no"
    Notifier(config, {}).stopping()
    assert "NOTIFY_SOCKET is not set" in caplog.text
    Notifier(config, {"NOTIFY_SOCKET": "/none"}).ready("fine")
    assert "cannot notify systemd: No such file or directory" in caplog.text


class NoLoop:
    """A loop that must not be used."""

    def call_soon(self, callback: object) -> object:
        raise AssertionError

    def call_later(self, delay: float, callback: object) -> object:
        raise AssertionError


@pytest.mark.parametrize(
    "environment",
    [{}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}],
)
def test_no_watchdog(environment: dict[str, str]) -> None:
    config = default_config()
    config.values["supervised"] = "systemd"
    notifier = Notifier(config, {"NOTIFY_SOCKET": "/none", **environment})
    notifier.watch(NoLoop())  # type: ignore[arg-type]
