"""`penstock serve` as a process: starting, admitting clients, stopping."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from tests.support.servers.penstock_server import penstock_command, running_penstock
from tests.support.servers.raw_redis import RawRedis, Refusal
from tests.support.servers.redis_server import client_without_retries

WAIT_SECONDS_MAX = 20.0


def refused_start(*arguments: str) -> tuple[int, str]:
    """Start a server that must fail to start; return its exit status and stderr."""
    done = subprocess.run(
        penstock_command("serve", *arguments),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, "it does not come to hold"
        time.sleep(0.01)


def closes(connected: socket.socket) -> bytes:
    """The bytes of a connection until it is closed."""
    connected.settimeout(WAIT_SECONDS_MAX)
    said = b""
    while piece := connected.recv(4096):
        said += piece
    return said


def own_address_or_none() -> str | None:
    """An address of this machine that is not the loopback; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address: str = probe.getsockname()[0]
    return None if address.startswith("127.") else address


# --- Start and end -----------------------------------------------------------------------------------


def test_a_server_answers_and_ends_with_0_on_sigterm(tmp_path: Path) -> None:
    with running_penstock("--dir", str(tmp_path / "a/b")) as server:
        assert server.client().xadd("s", {"a": 1}) is not None
        assert (tmp_path / "a/b").is_dir()
        assert server.end(signal.SIGTERM) == 0
        assert "the data is in memory only" in server.log()
        assert f"ready on 127.0.0.1:{server.port}" in server.log()
        assert server.log().splitlines()[-1].endswith("* stopped")


def test_the_log_names_the_url_and_hides_the_password() -> None:
    with running_penstock() as server:
        assert f"* connect with redis://127.0.0.1:{server.port}" in server.log()
        assert "no password" not in server.log()
    with running_penstock("--requirepass", "secret", "--bind", "0.0.0.0") as server:
        assert f"* connect with redis://:PASSWORD@127.0.0.1:{server.port}\n" in server.log()
        assert "no password" not in server.log()
        assert "secret" not in server.log()


def test_the_log_warns_of_a_server_without_a_password_that_other_machines_can_reach() -> None:
    with running_penstock("--bind", "0.0.0.0") as server:
        assert "# no password is set: protected-mode refuses other machines" in server.log()
    with running_penstock("--bind", "0.0.0.0", "--protected-mode", "no") as server:
        assert "# NO PASSWORD IS SET and protected-mode is off" in server.log()
        assert "every machine that can reach 0.0.0.0 can read" in server.log()


def test_ctrl_c_ends_a_server_with_0() -> None:
    with running_penstock() as server:
        assert server.end(signal.SIGINT) == 0


def test_at_shutdown_replies_are_sent_and_all_connections_closed() -> None:
    with (
        running_penstock() as server,
        RawRedis(server.port) as client,
        RawRedis(server.port) as idle,
    ):
        client.send([[b"XADD", b"s", b"1-%d" % n, b"f", b"x" * 100] for n in range(1, 1001)])
        for number in range(1, 1001):
            assert client.read() == b"1-%d" % number
        assert server.end() == 0
        assert closes(client.socket) == b""
        assert closes(idle.socket) == b""


def test_a_blocked_reader_does_not_delay_the_shutdown() -> None:
    with running_penstock() as server, RawRedis(server.port) as client:
        client.send([[b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"]])
        assert server.end() == 0
        closes(client.socket)


def test_a_port_in_use_is_named() -> None:
    with running_penstock() as server:
        status, said = refused_start("--port", str(server.port), "--dir", str(server.folder))
        assert status == 1
        assert said.endswith(
            f"penstock serve: cannot listen on 127.0.0.1:{server.port}: Address already in use\n"
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "x"], "command line: port x: argument couldn't be parsed into an integer"),
        (["--prot", "1"], "command line: prot 1: unknown directive; did you mean port?"),
        (["--port", "0"], "port 0 and no unixsocket: no client could connect"),
        (["/no/such/file"], "/no/such/file: cannot be read: No such file or directory"),
        (["--bind", "192.0.2.77", "--port", "1"], "cannot listen on 192.0.2.77:1: Cannot assign"),
        (["--logfile", "/no/such/folder/log"], "logfile /no/such/folder/log: No such file"),
        (["--dir", "/dev/null/x"], "dir /dev/null/x: Not a directory"),
    ],
)
def test_an_error_at_start_is_explained(tmp_path: Path, arguments: list[str], said: str) -> None:
    if "--dir" not in arguments:
        arguments = [*arguments, "--dir", str(tmp_path)]
    status, text = refused_start(*arguments)
    assert status == 1
    assert said in text
    assert "Traceback" not in text


def test_text_of_a_file_cannot_control_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "evil.conf"
    path.write_text("port \x1b]0;title\x07\n")
    status, text = refused_start(str(path), "--dir", str(tmp_path))
    assert status == 1
    assert r"evil.conf:1: port \x1b]0;title\x07: " in text
    assert "\x1b" not in text


def test_invalid_arguments_are_a_usage_error() -> None:
    status, text = refused_start("a.conf", "b.conf")
    assert status == 2
    assert "b.conf" in text


def test_help_shows_examples() -> None:
    done = subprocess.run(
        penstock_command("serve", "--help"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "penstock serve penstock.conf --port 7000" in done.stdout


def test_the_command_line_overrides_the_file_and_rewrite_updates_it(tmp_path: Path) -> None:
    text = "# mine\ntimeout 100\nhz 20\nio-threads 4\n"
    with running_penstock("--hz", "30", file=text) as server:
        client = server.client(decode_responses=True)
        assert client.config_get("timeout", "hz") == {"timeout": "100", "hz": "30"}
        assert "directives without effect, ignored: io-threads" in server.log()
        client.config_set("timeout", 200)
        client.config_rewrite()
        with pytest.raises(redis.ResponseError, match="immutable config"):
            client.config_set("port", 1)
        written = (server.folder / "penstock.conf").read_text()
        assert written.startswith("# mine\ntimeout 200\nhz 30\nio-threads 4\n")


def test_a_log_file_replaces_stderr(tmp_path: Path) -> None:
    path = tmp_path / "log"
    command = penstock_command("serve", "--port", "0", "--unixsocket", str(tmp_path / "s"))
    command += ["--logfile", str(path), "--dir", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            eventually(lambda: path.exists() and "ready on" in path.read_text())
        finally:
            process.terminate()
        assert process.communicate(timeout=WAIT_SECONDS_MAX)[1] == b""


def test_a_platform_without_uvloop_is_served_by_asyncio(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['uvloop'] = None; from penstock.cli.entry import main; main()"
    )
    path = tmp_path / "s"
    command = [sys.executable, "-c", program, "serve", "--port", "0", "--unixsocket", str(path)]
    command += ["--logfile", str(tmp_path / "log"), "--dir", str(tmp_path)]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            eventually(lambda: path.exists() and "ready on" in (tmp_path / "log").read_text())
            with redis.Redis(unix_socket_path=str(path)) as client:
                assert client.xadd("s", {"a": "b" * 1_000_000}, id="1-0") == b"1-0"
                assert client.xlen("s") == 1
        finally:
            process.terminate()
        assert process.wait(timeout=WAIT_SECONDS_MAX) == 0
    assert "uvloop is not installed" in (tmp_path / "log").read_text()


# --- Unix sockets ------------------------------------------------------------------------------------


def test_a_unix_socket_without_a_port(tmp_path: Path) -> None:
    path = tmp_path / "penstock.sock"
    with running_penstock(
        "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"
    ) as it:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert redis.Redis(unix_socket_path=str(path)).ping()
        with client_without_retries(it.port) as client, pytest.raises(redis.ConnectionError):
            client.ping()
        status, said = refused_start(
            "--port", "0", "--unixsocket", str(path), "--dir", str(tmp_path)
        )
        assert status == 1
        assert "another server listens on it" in said
        assert it.end() == 0
    assert not path.exists()


def test_a_stale_unix_socket_is_replaced_and_a_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "stale.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with running_penstock("--unixsocket", str(path)):
        assert redis.Redis(unix_socket_path=str(path)).ping()
    path.write_text("precious")
    status, said = refused_start("--unixsocket", str(path), "--dir", str(tmp_path), "--port", "0")
    assert status == 1
    assert "not a socket" in said
    assert path.read_text() == "precious"


# --- Admission ---------------------------------------------------------------------------------


def test_strangers_need_the_password() -> None:
    with running_penstock("--requirepass", "secret") as server, RawRedis(server.port) as client:
        assert client.ask([[b"XLEN", b"s"]]) == [Refusal("NOAUTH Authentication required.")]


def test_no_more_than_maxclients_are_admitted() -> None:
    with running_penstock("--maxclients", "2") as server:
        with RawRedis(server.port) as first, RawRedis(server.port) as second:
            assert [first.ask([[b"PING"]]), second.ask([[b"PING"]])] == [["PONG"], ["PONG"]]
            with socket.create_connection(("127.0.0.1", server.port)) as third:
                assert closes(third) == b"-ERR max number of clients reached\r\n"
        eventually(lambda: _is_let_in(server.port))


def _is_let_in(port: int) -> bool:
    with RawRedis(port) as client:
        try:
            return client.ask([[b"PING"]]) == ["PONG"]
        except ConnectionError:
            return False


def test_a_client_from_another_machine_is_denied_without_a_password() -> None:
    address = own_address_or_none()
    if address is None:
        pytest.skip("this machine has no address but the loopback")
    with running_penstock("--bind", "*", "-::*") as server:
        with socket.create_connection((address, server.port)) as client:
            said = closes(client)
            assert said.startswith(b"-DENIED Redis is running in protected mode")
            assert said.endswith(b"\r\n")
        assert server.client().config_set("protected-mode", "no")
        assert redis.Redis(host=address, port=server.port).ping()


def test_an_unavailable_optional_address_is_skipped() -> None:
    with running_penstock("--bind", "127.0.0.1", "-192.0.2.77") as server:
        assert server.client().ping()


def test_an_idle_client_is_closed_and_a_blocked_one_is_not() -> None:
    with (
        running_penstock("--timeout", "1") as server,
        RawRedis(server.port) as idle,
        RawRedis(server.port) as waiting,
    ):
        waiting.send([[b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"]])
        assert closes(idle.socket) == b""
        server.client().xadd("s", {"a": "b"}, id="1-0")
        assert waiting.read() == [[b"s", [[b"1-0", [b"a", b"b"]]]]]


# --- Periodic work ------------------------------------------------------------------------------------


def test_commands_that_add_are_refused_over_maxmemory_until_it_is_raised() -> None:
    with running_penstock("--maxmemory", "1mb") as server:
        client = server.client()
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.xadd("s", {"a": 1})
        assert client.xlen("s") == 0
        client.config_set("maxmemory", "0")
        assert client.xadd("s", {"a": 1}) is not None


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="a process's limits are read there")
def test_the_limit_of_open_files_is_raised_for_maxclients() -> None:
    with running_penstock("--maxclients", "3000") as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
        allowed = int(line.split()[3])
        shown = server.client(decode_responses=True).config_get("maxclients")["maxclients"]
        assert allowed >= int(str(shown)) + 32
        with pytest.raises(redis.ResponseError, match="operating system is not able to handle"):
            server.client().config_set("maxclients", 2**32 - 1)
