"""Runs a redis-server with an append-only file, which tests kill and start again.

with running_durable_redis(folder, file="replicaof 127.0.0.1 6379") as server:
    server.kill(), server.start()
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.support.servers.redis_server import (
    client_without_retries,
    free_port,
    redis_program_or_none,
)

START_SECONDS_MAX = 60.0


class DurableRedis:
    """`start`, `kill` and `port` work as in tests/support/servers/penstock_server.py.

    `file`: text of a configuration file, which CONFIG REWRITE may change.
    """

    def __init__(self, folder: Path, file: str = "") -> None:
        self._folder = folder
        self._file = folder / "redis.conf"
        self._file.write_text(file)
        self.port = 0
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        """Start the server on its data and on a new port, and wait until it has loaded the data."""
        program = redis_program_or_none()
        assert program is not None
        self.port = free_port()
        settings = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self._folder,
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        with (self._folder / "redis.log").open("ab") as output:
            self.process = subprocess.Popen(
                [program, str(self._file), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        with client_without_retries(self.port) as client:
            while time.monotonic() < deadline:
                try:
                    client.ping()
                except (redis.ConnectionError, redis.BusyLoadingError):
                    time.sleep(0.02)
                else:
                    return
        raise RuntimeError("redis-server does not start")

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running_durable_redis(folder: Path, file: str = "") -> Iterator[DurableRedis]:
    """Start a server on a folder that is kept, and kill it afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    server = DurableRedis(folder, file)
    server.start()
    try:
        yield server
    finally:
        server.kill()
