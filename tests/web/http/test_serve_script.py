"""`make serve`: server and dashboard start together and stop together."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import redis

from tests.support.servers.penstock_server import penstock_command
from tests.support.servers.redis_server import client_without_retries, free_port
from tests.support.source_tree import ROOT

SCRIPT = ROOT / "tools" / "serve.sh"
SECONDS_MAX = 60.0
# A background job of a shell ignores Ctrl-C, and a shell script cannot change that.
HEEDING_SIGINT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_server_and_dashboard(tmp_path: Path, how: signal.Signals) -> None:
    pytest.importorskip("nicegui", reason="the extra `ui` is not installed: make build")
    program = tmp_path / "penstock"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(penstock_command())} "$@"\n')
    program.chmod(0o755)
    ports = [free_port(), free_port()]
    paths = [
        str(Path(part).absolute())
        for part in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if part
    ]
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"
    }
    process = subprocess.Popen(
        [sys.executable, "-c", HEEDING_SIGINT, SCRIPT, tmp_path, *map(str, ports)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    try:
        until(lambda: answers(ports[1]))
        with redis.Redis(port=ports[0]) as client:
            client.xadd("s", {"a": "1"})
        process.send_signal(how)
        assert process.wait(SECONDS_MAX) == 128 + how
        assert not answers(ports[1])
        assert (tmp_path / "penstock-data").is_dir()
        with client_without_retries(ports[0]) as client, pytest.raises(redis.ConnectionError):
            client.ping()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/streams", timeout=10).close()
    except OSError:
        return False
    return True


def until(holds: object) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        if callable(holds) and holds():
            return
        time.sleep(0.1)
    raise AssertionError("too late")
