"""`penstock ui`: errors before anything is served. tests/web has the rest."""

from __future__ import annotations

import builtins
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.servers.redis_server import free_port


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "10.1.2.3", "somewhere"])
def test_an_address_that_others_can_reach_needs_a_password(
    penstock: CommandLine, bind: str
) -> None:
    code, text = penstock.error("ui", "--bind", bind)
    assert code == 2
    assert "PENSTOCK_UI_PASSWORD" in text


def test_a_port_in_use_is_reported_in_one_line(penstock: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, text = penstock.error("ui", "--port", str(port))
    assert (code, text) == (1, f"cannot listen on 127.0.0.1, port {port}: Address already in use")


def test_without_nicegui_the_extra_is_named(
    penstock: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "nicegui":
            raise ImportError(name)
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    code, text = penstock.error("ui", "--port", str(free_port()))
    assert code == 1
    assert "penstock[ui]" in text


@pytest.mark.parametrize("proxy", ["*", "", "proxy.example", "10.0.0.1/8", "10.0.0.1,10.0.0.2"])
def test_a_trusted_proxy_is_an_address_or_a_network(penstock: CommandLine, proxy: str) -> None:
    code, text = penstock.error("ui", "--trusted-proxy", proxy)
    assert code == 2
    assert "is not an address (10.0.0.1) or a network (10.0.0.0/24)" in text


def test_a_state_folder_that_cannot_be_used_is_refused(
    penstock: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text("not a folder")
    result = penstock.run("ui", "--port", str(free_port()), "--state-dir", str(path))
    assert result.exit_code == 1
    assert "cannot be used for the history" in result.stderr.splitlines()[-1]
    assert path.read_text() == "not a folder"


def test_the_help_has_examples(penstock: CommandLine) -> None:
    text = penstock.run("ui", "--help").stdout
    assert "penstock ui --allow-writes" in text
    assert "PENSTOCK_UI_PASSWORD" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--viewer-password", "look"), "needs a password for operators too"),
        (("--viewer-password", "x", "--password", "x"), "must differ"),
        (("--metrics", "8379"), "must differ from the port"),
        (("--url", "redis://h", "--url", "redis://h"), "two servers have the name h-6379"),
        (("--url", "a=redis://h", "--url", "a=redis://i"), "two servers have the name a"),
        (("--url", "a=http://h"), "expected redis://"),
    ],
)
def test_options_that_do_not_go_together(
    penstock: CommandLine, words: tuple[str, ...], said: str
) -> None:
    port = () if "--metrics" in words else ("--port", str(free_port()))
    code, text = penstock.error("ui", *port, *words)
    assert code == 2
    assert said in text
