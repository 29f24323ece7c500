"""A redis-server that keeps everything, to be killed and started again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.support.servers.redis_server import free_port, redis_program_or_none

START_SECONDS_MAX = 60.0


class DurableRedis:
    """`start`, `kill`, `port`: as tests/support/servers/penstock_server has them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = 0
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        """Start it on its data and on a new port; it has loaded them when this returns."""
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
                [program, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        with redis.Redis(port=self.port) as client:
            while time.monotonic() < deadline:
                try:
                    client.ping()
                except (redis.ConnectionError, redis.BusyLoadingError):
                    time.sleep(0.02)
                else:
                    return
        raise RuntimeError("redis-server does not start")

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running_durable_redis(folder: Path) -> Iterator[DurableRedis]:
    """Start it on a folder that stays, and end it afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    server = DurableRedis(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
