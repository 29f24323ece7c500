"""Runs a real Redis or Valkey for the tests that compare penstock with it."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.servers.programs import REDIS_7_0, Program

START_SECONDS_MAX = 20.0
PORTS_TRIED_MAX = 5


class RedisServer:
    """A running server that stores nothing on disk."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.client = redis.Redis(port=port)
        self._settings = self._all_settings()

    def reset(self) -> None:
        """Remove all keys, and restore every setting that a test has changed."""
        self.client.flushall()
        settings = self._all_settings()
        for name, value in self._settings.items():
            if settings[name] != value:
                self.client.config_set(name, value)

    def _all_settings(self) -> dict[str, str]:
        return {str(name): str(value) for name, value in self.client.config_get("*").items()}


def redis_program_or_none() -> str | None:
    """Find redis-server on PATH, or where tools/provide-redis.sh puts it."""
    return REDIS_7_0.path_or_none()


def client_without_retries(port: int, **options: Any) -> redis.Redis:
    """A client that fails at once if it cannot connect. By default, redis-py retries for 3 seconds."""
    return redis.Redis("127.0.0.1", port, retry=Retry(NoBackoff(), 0), **options)


@contextmanager
def running_redis(*arguments: str, program: Program = REDIS_7_0) -> Iterator[RedisServer]:
    """Start a server on a free port in a temporary folder, and stop it afterwards."""
    path = program.path_or_none()
    assert path is not None, f"{program.missing}: call Program.need() first"
    with tempfile.TemporaryDirectory(prefix="penstock-redis-") as folder:
        process, port = _start(path, Path(folder), arguments)
        try:
            yield RedisServer(port)
        finally:
            end(process)


def _environment() -> dict[str, str]:
    """Without the libraries of `make sanitize`, which are made for our own code."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def _start(
    program: str, folder: Path, arguments: tuple[str, ...]
) -> tuple[subprocess.Popen[bytes], int]:
    log = folder / "redis.log"
    for _ in range(PORTS_TRIED_MAX):
        port = free_port()
        command = [program, "--port", str(port), "--dir", str(folder), "--save", ""]
        # Its own session and files: it must not keep a pipe open that a parent process reads to its end.
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*command, "--appendonly", "no", "--bind", "127.0.0.1", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=_environment(),
            )
        if answers(process, port):
            return process, port
        end(process)
    raise RuntimeError(f"{program} does not start:\n{log.read_text()}")


def answers(process: subprocess.Popen[bytes], port: int, **options: Any) -> bool:
    """Wait until a server or a Sentinel answers; False if it ends. `options`: of a client that reaches it."""
    deadline = time.monotonic() + START_SECONDS_MAX
    with client_without_retries(port, **options) as client:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                # The pid shows whether another process has taken the port in the meantime.
                return bool(client.info("server")["process_id"] == process.pid)
            except redis.ConnectionError:
                time.sleep(0.01)
    return False


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop a process, and wait."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
