"""Real processes that end and start again: what is kept, who may use a directory, what is said meanwhile."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.servers.penstock_server import penstock_command, running_penstock
from tests.support.servers.raw_redis import RawRedis
from tests.support.servers.redis_server import free_port


def refused_start(folder: Path) -> tuple[int, str]:
    command = penstock_command("serve", "--port", str(free_port()), "--dir", str(folder))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_a_second_server_on_a_directory_is_refused(tmp_path: Path) -> None:
    with running_penstock(data=tmp_path) as server:
        code, said = refused_start(tmp_path)
        assert code == 1
        assert f"penstock serve: {tmp_path} is in use by another server" in said
        assert "Traceback" not in said
        server.kill()  # the lock goes with the process
        server.start()
        assert server.end() == 0


def test_damage_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    with running_penstock(data=tmp_path) as server:
        server.client().xadd("s", {"a": "b" * 100})
        server.client().xadd("s", {"c": "d" * 100})
        assert server.end() == 0
    [path] = (tmp_path / "appendonlydir").glob("*.incr.aof")
    data = path.read_bytes().replace(b"bbbb", b"bxbb", 1)
    path.write_bytes(data)
    code, said = refused_start(tmp_path)
    assert code == 1
    assert str(path) in said
    assert "checksum" in said
    assert "(at byte " in said
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("words", "kept"),
    [([b"SHUTDOWN", b"SAVE"], 1), ([b"SHUTDOWN", b"NOSAVE"], 0), ([b"SHUTDOWN"], 0)],
)
def test_shutdown_saves_what_it_is_told_to(tmp_path: Path, words: list[bytes], kept: int) -> None:
    with running_penstock("--appendonly", "no", data=tmp_path) as server:
        with RawRedis(server.port) as client:
            client.ask([[b"XADD", b"s", b"*", b"a", b"1"]])
            client.send([words])
            assert client.rest() == b""
        assert server.wait() == 0
        server.start()
        assert server.client().xlen("s") == kept


def test_sigterm_saves_where_there_are_save_points(tmp_path: Path) -> None:
    with running_penstock("--appendonly", "no", "--save", "900 1", data=tmp_path) as server:
        server.client().xadd("s", {"a": 1})
        assert server.end(signal.SIGTERM) == 0
        server.start()
        assert server.client().xlen("s") == 1


def test_all_that_was_set_and_expires_is_there_after_a_restart(tmp_path: Path) -> None:
    with running_penstock(data=tmp_path) as server:
        client = server.client(db=3)
        client.set("k", "v", px=10_000_000)
        at_ms = client.pexpiretime("k")
        client.rpush("l", *range(1000))
        assert server.end() == 0
        server.start()
        client = server.client(db=3)
        assert client.pexpiretime("k") == at_ms
        assert client.llen("l") == 1000
