"""Runs the code blocks of a documentation page, in their order, as a reader would.

python  executed, all blocks of a page in one namespace; a block with >>> is a doctest
sh      executed by bash in the page's directory; lines with `penstock serve` and `penstock ui` run in the
        background until the page ends
toml    written to the file that its first line names in a comment, and read as a pipeline
text    and everything else: shown, not run

A block that cannot run has a comment before it: <!-- not run: reason -->. Free ports replace the ports of the
text: 6379 is a running penstock, 7000 and 7001 are for servers that the page starts, 8379 is a dashboard.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import free_port

RUN = ("python", "sh", "toml")
READY_SECONDS_MAX = 60.0
END_SECONDS_MAX = 20.0
SHELL_SECONDS_MAX = 120.0

_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+?) -->\n+)?^(?P<indent> *)```(?P<language>\w*)[^\n]*\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.M | re.S,
)
_SERVICE = re.compile(r"^penstock (serve|ui)\b")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    line: int
    reason: str | None

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.reason is None


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            match["language"],
            textwrap.dedent(match["text"]),
            page.count("\n", 0, match.start("text")) + 1,
            match["reason"],
        )
        for match in _BLOCK.finditer(page)
    ]


class Guide:
    """One page while its blocks run."""

    def __init__(self, page: Path, folder: Path, stack: ExitStack) -> None:
        self._page = page
        self._folder = folder
        self._stack = stack
        self._names: dict[str, Any] = {"__name__": "guide"}
        self._blocks = blocks_of(page.read_text())
        self._ports = {name: str(free_port()) for name in ("7000", "7001", "8379")}
        # NiceGUI behaves differently under pytest.
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
        }

    def run(self) -> int:
        """Run all blocks that run; return how many."""
        self._provide_server()
        self._provide_penstock()
        blocks = [block for block in self._blocks if block.runs]
        for block in blocks:
            text = re.sub(r"\b(6379|7000|7001|8379)\b", lambda m: self._ports[m[0]], block.text)
            # Errors then name the line of the page.
            getattr(self, f"_run_{block.language}")(text, "\n" * (block.line - 1))
        return len(blocks)

    def _provide_server(self) -> None:
        """What answers on port 6379, unless the page starts it."""
        needed = any("6379" in block.text or "penstock" in block.text for block in self._blocks)
        started = any(re.search(r"^penstock serve *(#.*)?$", b.text, re.M) for b in self._blocks)
        if needed and not started:
            server = self._stack.enter_context(running_penstock())
            self._ports["6379"] = str(server.port)
        else:
            self._ports["6379"] = str(free_port())
        self._environment["PENSTOCK_URL"] = f"redis://127.0.0.1:{self._ports['6379']}"

    def _provide_penstock(self) -> None:
        """`penstock` as a command of the shell, whatever is installed."""
        programs = self._folder / ".bin"
        programs.mkdir(exist_ok=True)
        program = programs / "penstock"
        start = "import sys; sys.argv[0] = 'penstock'; from penstock.cli.entry import main; main()"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{start}" "$@"\n')
        program.chmod(0o755)
        self._environment["PATH"] = f"{programs}:{os.environ['PATH']}"

    def _run_python(self, text: str, lines_before: str) -> None:
        if ">>>" not in text:
            code = compile(lines_before + text, str(self._page), "exec", dont_inherit=True)
            exec(code, self._names)
            return
        # Not the namespace itself: a doctest clears it.
        test = doctest.DocTestParser().get_doctest(
            text, self._names, self._page.name, str(self._page), len(lines_before)
        )
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        output: list[str] = []
        runner.run(test, out=output.append, clear_globs=False)
        self._names.update(test.globs)
        assert runner.summarize(verbose=False).failed == 0, "".join(output)

    def _run_toml(self, text: str, lines_before: str) -> None:
        from penstock.spark.pipeline.definition.file import load_pipeline  # noqa: PLC0415 - needs the extra

        del lines_before
        name = text.splitlines()[0].removeprefix("#").strip()
        assert name.endswith(".toml"), f"{self._page.name}: the first line names the file"
        path = self._folder / name
        path.write_text(text)
        assert load_pipeline(path)

    def _run_sh(self, text: str, lines_before: str) -> None:
        del lines_before
        script: list[str] = []
        for line in text.splitlines():
            if _SERVICE.match(line):
                self._shell(script)
                script = []
                self._start(line)
            else:
                script.append(line)
        self._shell(script)

    def _shell(self, script: list[str]) -> None:
        if not "".join(script).strip():
            return
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(script)],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SHELL_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{self._page.name}: {script}\n{done.stdout}\n{done.stderr}"

    def _start(self, line: str) -> None:
        """Start a server or a dashboard, and wait until it answers."""
        words = shlex.split(line, comments=True)
        if "--port" not in words:
            words += ["--port", self._ports["6379" if words[1] == "serve" else "8379"]]
        port = int(words[words.index("--port") + 1])
        log = self._folder / f"{words[1]}-{port}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                words, cwd=self._folder, env=self._environment, stdout=output, stderr=output
            )
        self._stack.callback(_end, process)
        answers = _redis_answers if words[1] == "serve" else _page_answers
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not answers(port):
            assert process.poll() is None, f"{line}: {log.read_text()}"
            assert time.monotonic() < deadline, f"{line} does not answer: {log.read_text()}"
            time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(END_SECONDS_MAX)


def _redis_answers(port: int) -> bool:
    with redis.Redis(port=port, socket_timeout=5) as client:
        try:
            return bool(client.ping())
        except redis.AuthenticationError:
            return True
        except redis.RedisError:
            return False


def _page_answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/streams", timeout=5) as reply:
            return bool(reply.status == 200)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@contextmanager
def guide(page: Path, folder: Path) -> Iterator[Guide]:
    """A page, ready to run in an empty directory; all that it starts ends with the `with`."""
    with ExitStack() as stack:
        yield Guide(page, folder, stack)
