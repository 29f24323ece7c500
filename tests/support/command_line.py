"""Runs the `penstock` command in this process or as a child process.

In this process is fast, and enough to test the output. Pipes, signals and terminals need a child.
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

# A background job of a shell ignores SIGINT, and its children inherit that. Restore the default.
_RESTORE_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
PROGRAM = [sys.executable, "-c", f"{_RESTORE_SIGINT}; from penstock.cli.entry import main; main()"]
ENDS_SECONDS_MAX = 60


def url_of(server: RedisServer) -> str:
    return f"redis://127.0.0.1:{server.port}/0"


class CommandLine:
    """`penstock` with PENSTOCK_URL pointing at one server."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.environment = {"PENSTOCK_URL": url_of(server)}

    def run(self, *words: str, stdin: bytes | str | None = None) -> Result:
        """Run in this process. Exceptions other than SystemExit reach the test."""
        return CliRunner().invoke(
            app,
            words,
            input=stdin,
            env=self.environment,
            catch_exceptions=False,
            prog_name="penstock",
        )

    def lines(self, *words: str, stdin: bytes | str | None = None) -> list[str]:
        """The output of a command that must succeed."""
        result = self.run(*words, stdin=stdin)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout.splitlines()

    def error(self, *words: str, stdin: bytes | str | None = None) -> tuple[int, str]:
        """The exit code and the single line on stderr of a command that must fail."""
        result = self.run(*words, stdin=stdin)
        assert result.exit_code != 0
        assert result.stderr.count("\n") == 1
        return result.exit_code, result.stderr.removeprefix("penstock: ").rstrip("\n")

    @contextmanager
    def process(
        self, *words: str, stdin: int | None = subprocess.DEVNULL, stdout: int = subprocess.PIPE
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run as a child process, which is killed if it still runs at the end."""
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
