"""The configurations of docs/high-availability.md, copied as they stand, with real Sentinels.

Only addresses and ports are replaced: 10.0.0.1, .2 and .3 are ports of 127.0.0.1 here. With the times of the
page a trio takes half a minute, so `make test` runs the pair, and `make soak` all.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.campaign import SOAK
from tests.support.replication.links import eventually, linked
from tests.support.servers.penstock_server import penstock_command
from tests.support.servers.programs import REDIS_7_0
from tests.support.servers.redis_server import free_port, redis_program_or_none

PAGE = Path(__file__).resolve().parents[2] / "docs" / "high-availability.md"
PASSWORD = "the-password"


def blocks(heading: str) -> list[str]:
    """The fenced blocks of a section."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^```\w+\n(.*?)^```$", section, re.M | re.S)


class Process:
    """A server or a Sentinel, with its file, in a folder of its own."""

    def __init__(self, folder: Path, configuration: str, command: list[str], port: int) -> None:
        folder.mkdir()
        self._folder = folder
        self.port = port
        self._command = [str(folder / "its.conf") if word == "FILE" else word for word in command]
        (folder / "its.conf").write_text(configuration)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdout=log, stderr=log, start_new_session=True
            )
        eventually(lambda: _answers(self.port), f"{self._command} answers")

    def end(self) -> None:
        """Kill it."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(timeout=20)

    def client(self) -> Any:
        return redis.Redis(port=self.port, password=PASSWORD, retry=Retry(NoBackoff(), 0))


def _answers(port: int) -> bool:
    try:
        with redis.Redis(port=port, retry=Retry(NoBackoff(), 0)) as client:
            return bool(client.ping())
    except redis.AuthenticationError:
        return True


class Setup:
    """The servers of the page, and its Sentinels."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._ports = [free_port() for _ in range(count)]
        self.servers: list[Process] = []
        self.sentinels: list[Process] = []

    def here(self, text: str) -> str:
        """A text of the page with the addresses of this machine."""
        for number, port in enumerate(self._ports, start=1):
            text = text.replace(f"10.0.0.{number} 6379", f"127.0.0.1 {port}")
        assert "10.0.0." not in text
        return text

    def start_servers(self, configuration: str) -> None:
        """The first server has no `replicaof` line."""
        for number, port in enumerate(self._ports):
            text = self.here(configuration).replace("port 6379\n", f"port {port}\n")
            if number == 0:
                text = re.sub(r"^replicaof.*\n", "", text, flags=re.M)
            command = penstock_command("serve", "FILE")
            self.servers.append(Process(self._folder / f"server{number}", text, command, port))
        for server in self.servers[1:]:
            linked(server.client())

    def start_sentinels(self, configuration: str) -> None:
        program = redis_program_or_none()
        assert program is not None
        for number in range(3):
            port = free_port()
            text = f"port {port}\n{self.here(configuration)}"
            command = [program, "FILE", "--sentinel"]
            folder = self._folder / f"sentinel{number}"
            self.sentinels.append(Process(folder, text, command, port))
        for sentinel in self.sentinels:
            with redis.Redis(port=sentinel.port) as client:
                eventually(lambda: _knows_all(client), "each Sentinel knows all")


def _knows_all(sentinel: Any) -> bool:
    known = sentinel.sentinel_master("queue")
    return (known["num-slaves"], known["num-other-sentinels"]) == (2, 2)


@contextmanager
def running(folder: Path, servers: int) -> Iterator[Setup]:
    setup = Setup(folder, servers)
    try:
        yield setup
    finally:
        for process in (*setup.sentinels, *setup.servers):
            process.end()


def pair(folder: Path) -> None:
    """FAILOVER, as the page writes it, changes the roles."""
    configuration, command = blocks("A pair")[:2]
    with running(folder, 2) as setup:
        setup.start_servers(configuration)
        old, new = (server.client() for server in setup.servers)
        old.xadd("orders", {"qty": 1})
        words = command[command.index("FAILOVER") :]
        assert old.execute_command(*setup.here(words).split())
        eventually(lambda: _role(setup.servers[0]) == b"slave", "the roles have changed")
        linked(old)
        new.xadd("orders", {"qty": 2})
        eventually(lambda: old.xlen("orders") == 2, "the old primary follows")
        with pytest.raises(redis.ReadOnlyError):
            old.xadd("orders", {"qty": 3})


def trio(folder: Path, more: str = "", login: str = "") -> None:
    """The Sentinels replace a primary that is killed; it comes back as a replica."""
    configuration, sentinel, *_, program = blocks("A trio under Sentinel")
    with running(folder, 3) as setup:
        setup.start_servers(configuration + more)
        setup.start_sentinels(sentinel + login)
        first, *others = setup.servers
        ports = iter(setup.sentinels)
        program = re.sub(
            r'"10\.0\.0\.\d", 26379', lambda _: f'"127.0.0.1", {next(ports).port}', program
        )
        exec(program, {})
        first.end()
        eventually(lambda: any(_role(one) == b"master" for one in others), "another primary")
        if more:
            first.start()  # with two acks, writes need all three
        eventually(lambda: _runs(program), "writes go on")
        if not more:
            first.start()
        for server in setup.servers:
            eventually(lambda: server.client().xlen("orders") >= 2, "all have all")  # noqa: B023
        eventually(lambda: _role(first) == b"slave", "the old primary follows")


def _runs(program: str) -> bool:
    exec(program, {})
    return True


def _role(server: Process) -> Any:
    return server.client().execute_command("ROLE")[0]


def trio_that_loses_nothing(folder: Path) -> None:
    trio(folder, more=blocks("A trio that loses nothing")[0])


def trio_with_users(folder: Path) -> None:
    _, _, users, login, _ = blocks("A trio under Sentinel")
    trio(folder, more=users, login=login)


@pytest.mark.parametrize(
    "setup",
    [pair, trio, trio_that_loses_nothing, trio_with_users] if SOAK else [pair],
    ids=lambda setup: setup.__name__,
)
def test_a_setup_of_the_page_works_as_it_stands(
    tmp_path: Path, setup: Callable[[Path], None]
) -> None:
    REDIS_7_0.need()
    setup(tmp_path)
