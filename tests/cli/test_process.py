"""Commands as processes: pipes, signals, a terminal, a lost connection."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.support.command_line import ENDS_SECONDS_MAX, PROGRAM, CommandLine
from tests.support.servers.redis_server import running_redis


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """The exit code and stderr."""
    _, errors = process.communicate(timeout=ENDS_SECONDS_MAX)
    return process.returncode, errors


def line_of(stream: IO[bytes] | None) -> bytes:
    assert stream is not None
    return stream.readline()


def on_a_terminal(penstock: CommandLine, *words: str, **environment: str) -> str:
    """The output of a successful command on a terminal."""
    ours, theirs = pty.openpty()
    settings = {"TERM": "xterm-256color", "COLUMNS": "200"} | environment
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        [*PROGRAM, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=inherited | penstock.environment | settings,
    ) as process:
        os.close(theirs)
        received = received_by(ours)
    assert process.returncode == 0
    return received.decode()


def received_by(terminal: int) -> bytes:
    """All output to a terminal, read concurrently because its buffer is small."""
    received = b""
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # Linux raises it when the other end is closed
            chunk = b""
        if not chunk:
            os.close(terminal)
            return received
        received += chunk


def test_ctrl_c_is_quiet(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"a": 1})
    with penstock.process("tail", "s", "--from", "start") as process:
        assert b"a=1" in line_of(process.stdout)  # it is running and waits for more
        process.send_signal(signal.SIGINT)
        assert ended(process) == (130, b"")


@pytest.mark.parametrize(
    ("arguments", "module"), [([], "typer"), (["serve"], "penstock.cli.server_start")]
)
def test_ctrl_c_is_quiet_while_the_command_is_imported(arguments: list[str], module: str) -> None:
    program = f"""
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from penstock.cli.entry import main
main()
"""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_server_starts_without_the_libraries_of_the_command_line() -> None:
    program = """
import sys
from penstock.cli import server_start
print(sorted({"typer", "click", "rich", "pydantic", "redis"} & {*sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"[]\n")


@pytest.mark.parametrize(
    ("arguments", "code"), [("a b", 2), ("-- a b", 2), ("--port x", 1), ("-h", 0), ("--help", 0)]
)
@pytest.mark.parametrize("closed", ["", "<&- >&- 2>&-"])
def test_serve_ends_with_its_code_whatever_is_closed(
    arguments: str, code: int, closed: str
) -> None:
    command = f"exec {sys.executable} -m penstock serve {arguments} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert done.returncode == code
    if code and not closed:
        assert done.stderr.startswith(b"penstock serve: ")
        assert done.stderr.count(b"\n") == 1


def test_an_entry_is_flushed_to_a_pipe_at_once(penstock: CommandLine) -> None:
    client = penstock.server.client
    client.xadd("s", {"a": "first"})
    with penstock.process("tail", "s", "--from", "start", "-n", "2") as process:
        assert b"a=first" in line_of(process.stdout)
        client.xadd("s", {"a": "second"})
        assert b"a=second" in line_of(process.stdout)
        assert ended(process) == (0, b"")


def test_a_line_is_added_as_soon_as_it_arrives(penstock: CommandLine) -> None:
    with penstock.process("add", "s", "-", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for number in (1, 2):
            process.stdin.write(b'{"a":%d}\n' % number)
            process.stdin.flush()
            assert line_of(process.stdout)
            assert penstock.server.client.xlen("s") == number
        assert ended(process) == (0, b"")


def test_a_closed_pipe_is_not_an_error(penstock: CommandLine) -> None:
    pipeline = penstock.server.client.pipeline()
    for _ in range(2000):
        pipeline.xadd("s", {"a": "x" * 100})
    pipeline.execute()
    with penstock.process("tail", "s", "--no-follow") as process:
        assert line_of(process.stdout)
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        assert ended(process) == (0, b"")


def test_unread_output_is_not_acknowledged(penstock: CommandLine) -> None:
    client = penstock.server.client
    client.xadd("s", {"a": 1})
    client.xgroup_create("s", "g", id="0")
    ours, theirs = os.pipe()
    os.close(ours)
    with penstock.process("tail", "s", "--group", "g", "--no-follow", stdout=theirs) as process:
        os.close(theirs)
        assert ended(process) == (0, b"")
    assert client.xpending("s", "g")["pending"] == 1


def test_entries_are_added_even_if_nobody_reads_the_ids(
    penstock: CommandLine, tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b'{"a":"xxxxxxxxxxxxxxxxxxxx"}\n' * 10_000)
    ours, theirs = os.pipe()
    os.close(ours)
    with (
        lines.open("rb") as source,
        penstock.process("add", "s", "-", stdin=source.fileno(), stdout=theirs) as process,
    ):
        os.close(theirs)
        assert ended(process) == (0, b"")
    assert penstock.server.client.xlen("s") == 10_000


def test_closed_standard_streams_count_as_empty(penstock: CommandLine) -> None:
    command = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *PROGRAM, "add", "s", "-"]
    result = subprocess.run(
        command, env=os.environ | penstock.environment, stderr=subprocess.PIPE, check=False
    )
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"a": 1})
    with (
        Path("/dev/full").open("wb") as full,
        penstock.process("tail", "s", "--no-follow", stdout=full.fileno()) as process,
    ):
        assert ended(process) == (1, b"penstock: cannot write: No space left on device\n")


def test_a_terminal_gets_colour_and_a_pipe_does_not(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"a": "[red]\x1b[2J"}, id="1-0")
    penstock.server.client.xadd("s", {"a": 1}, id="2-0")
    penstock.server.client.xadd("s", {"a": 1}, id="3-0")
    penstock.server.client.xgroup_create("s", "g", id="2-0")
    shown = on_a_terminal(penstock, "tail", "s", "--no-follow")
    assert "\x1b[36m1-0\x1b[0m" in shown
    assert "[red]\\x1b[2J" in shown
    assert set(re.findall(r"\x1b.", shown)) == {"\x1b["}
    assert "\x1b[2J" not in shown.replace("\\x1b[2J", "")
    table = on_a_terminal(penstock, "groups", "s")
    assert "\x1b[1;36mgroup" in table
    assert "lag unknown: " in table
    assert "\x1b" not in "".join(penstock.lines("tail", "s", "--no-follow"))
    assert "\x1b" not in on_a_terminal(penstock, "tail", "s", "--no-follow", "--json")


def test_no_color_is_respected(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"a": 1}, id="1-0")
    shown = on_a_terminal(penstock, "tail", "s", "--no-follow", NO_COLOR="1")
    assert not re.search(r"\x1b\[3\d", shown)


def test_a_long_line_is_not_cut_on_a_terminal(penstock: CommandLine) -> None:
    penstock.server.client.xadd("s", {"a": "x" * 1000})
    assert "x" * 1000 in on_a_terminal(penstock, "tail", "s", "--no-follow", COLUMNS="40")


def test_progress_is_shown_for_long_input_and_leaves_no_trace_on_stdout(
    penstock: CommandLine, tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b'{"a":"xxxxxxxxxxxxxxxxxxxx"}\n' * 10_000)
    ids = tmp_path / "ids"
    ours, theirs = pty.openpty()
    with (
        lines.open("rb") as source,
        ids.open("wb") as output,
        subprocess.Popen(
            [*PROGRAM, "add", "s", "-"],
            stdin=source,
            stdout=output,
            stderr=theirs,
            env=os.environ | penstock.environment | {"TERM": "xterm"},
        ),
    ):
        os.close(theirs)
        assert b" added " in received_by(ours)
    assert len(ids.read_bytes().splitlines()) == 10_000
    assert b"\x1b" not in ids.read_bytes()


def test_a_lost_connection_is_an_error(penstock: CommandLine) -> None:
    with running_redis() as server:
        line = CommandLine(server)
        server.client.xadd("s", {"a": 1})
        with line.process("tail", "s", "--from", "start") as process:
            assert line_of(process.stdout)
            server.client.shutdown(nosave=True)
            code, errors = ended(process)
    assert code == 3
    assert errors.startswith(f"penstock: cannot reach 127.0.0.1:{server.port}: ".encode())
    assert errors.count(b"\n") == 1


def test_retry_continues_where_it_stopped(penstock: CommandLine) -> None:
    """The connection is cut while the server keeps running."""
    client = penstock.server.client
    client.xadd("s", {"a": "first"})
    with penstock.process("tail", "s", "--from", "start", "-n", "2", "--retry", "60") as process:
        assert b"a=first" in line_of(process.stdout)
        while not client.info("clients")["blocked_clients"]:
            pass  # a connection cut while idle is replaced silently
        client.client_kill_filter(_type="normal", skipme=True)
        assert b"retrying for 60 s" in line_of(process.stderr)
        assert b"reconnected" in line_of(process.stderr)
        client.xadd("s", {"a": "second"})
        assert b"a=second" in line_of(process.stdout)
        assert ended(process)[0] == 0
