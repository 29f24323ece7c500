"""`daemonize`, `pidfile`, `supervised upstart`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import redis

from tests.support.servers.penstock_server import penstock_command, running_penstock
from tests.support.servers.redis_server import free_port

SECONDS_MAX = 30.0


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # nobody waits for the child of a child in a container


def test_a_server_in_the_background(tmp_path: Path) -> None:
    port = free_port()
    log, pid_file = tmp_path / "log", tmp_path / "pid"
    done = subprocess.run(
        [
            *penstock_command("serve", "--port", str(port), "--dir", str(tmp_path / "data")),
            *("--daemonize", "yes", "--logfile", str(log), "--pidfile", str(pid_file)),
        ],
        capture_output=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    wait_until(lambda: log.exists() and " * ready on " in log.read_text())
    pid = int(pid_file.read_text())
    try:
        with redis.Redis(port=port) as client:
            assert client.info("server")["process_id"] == pid
            client.xadd("s", {"a": 1})
        assert os.getsid(pid) == pid
        assert Path(f"/proc/{pid}/fd/0").readlink() == Path(os.devnull)
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not runs(pid))
    assert not pid_file.exists()


def test_an_error_is_seen_before_the_background(tmp_path: Path) -> None:
    with running_penstock() as server:
        done = subprocess.run(
            [*penstock_command("serve", "--port", str(server.port)), "--daemonize", "yes"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    assert done.returncode == 1
    assert "Address already in use" in done.stderr


def test_a_pid_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with running_penstock("--pidfile", str(tmp_path / "none" / "pid")) as server:
        assert "none/pid: No such file or directory" in server.log()


def test_upstart_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        penstock_command("serve", "--supervised", "upstart"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 1
    assert "upstart is not supported" in done.stderr
