"""`penstock` as a test runs it: inside this process, or as a process of its own.

Inside is quick and enough for what is printed. Pipes, signals and terminals need a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from typer.testing import CliRunner, Result

from penstock.cli.main import app
from tests.support.servers.redis_server import RedisServer

# A shell's background job ignores Ctrl-C, and so would all that it starts.
_HEED_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
PROGRAM = [sys.executable, "-c", f"{_HEED_SIGINT}; from penstock.cli.main import main; main()"]
ENDS_SECONDS_MAX = 60


def url_of(server: RedisServer) -> str:
    return f"redis://127.0.0.1:{server.port}/0"


class CommandLine:
    """`penstock` with PENSTOCK_URL pointing at one server."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.environment = {"PENSTOCK_URL": url_of(server)}

    def run(self, *words: str, stdin: bytes | str | None = None) -> Result:
        """Run inside this process. An exception that is not an exit is the test's."""
        return CliRunner().invoke(
            app,
            words,
            input=stdin,
            env=self.environment,
            catch_exceptions=False,
            prog_name="penstock",
        )

    def lines(self, *words: str, stdin: bytes | str | None = None) -> list[str]:
        """What is printed by a command that succeeds."""
        result = self.run(*words, stdin=stdin)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout.splitlines()

    def error(self, *words: str, stdin: bytes | str | None = None) -> tuple[int, str]:
        """The exit code and the one line on stderr of a command that fails."""
        result = self.run(*words, stdin=stdin)
        assert result.exit_code != 0
        assert result.stderr.count("\n") == 1
        return result.exit_code, result.stderr.removeprefix("penstock: ").rstrip("\n")

    @contextmanager
    def process(
        self, *words: str, stdin: int | None = subprocess.DEVNULL, stdout: int = subprocess.PIPE
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A process of its own, ended if the test does not end it."""
        with subprocess.Popen(
            [*PROGRAM, *words],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=os.environ | self.environment,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
