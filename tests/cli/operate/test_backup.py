"""`penstock backup` and `penstock restore`, on real servers and on servers that misbehave."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from tests.support.replication.false_primary import SOME_ID, FalsePrimary
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tests.support.servers.redis_server import RedisServer

QUICK = ("--repl-diskless-sync-delay", "0")
SECONDS_MAX = 60.0


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words, catch_exceptions=False, prog_name="penstock")


def url_of(port: int) -> str:
    return f"redis://127.0.0.1:{port}/0"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockServer]:
    data = tmp_path_factory.mktemp("source") / "data"
    with running_penstock(*QUICK, data=data) as running:
        yield running


class Producer:
    """Adds numbered entries until it is stopped, and knows how many were acknowledged."""

    def __init__(self, port: int, stream: str) -> None:
        self.acknowledged = 0
        self._port = port
        self._stream = stream
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with redis.Redis(port=self._port) as client:
            while not self._stop.is_set():
                try:
                    client.xadd(self._stream, {"n": self.acknowledged})
                except redis.ConnectionError:
                    return
                self.acknowledged += 1

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def numbers(client: redis.Redis, stream: str) -> list[int]:
    return [int(fields[b"n"]) for _, fields in client.xrange(stream)]  # type: ignore[index, union-attr]


def test_a_backup_under_load_is_restored_after_a_kill(tmp_path: Path) -> None:
    """Nothing acknowledged before the backup is missing, and it is one moment of each stream."""
    with running_penstock(*QUICK, data=tmp_path / "data") as server:
        client = server.client()
        client.xgroup_create("kept", "g", mkstream=True)
        client.xadd("kept", {"n": 1})
        client.xreadgroup("g", "ann", {"kept": ">"})
        producers = [Producer(server.port, f"s{number}") for number in range(2)]
        try:
            deadline = time.monotonic() + SECONDS_MAX
            while min(producer.acknowledged for producer in producers) < 100:
                assert time.monotonic() < deadline, "the producers stand still"
                time.sleep(0.01)
            before = [producer.acknowledged for producer in producers]
            result = run("backup", "--url", url_of(server.port), str(tmp_path / "b.rdb"), "--json")
        finally:
            server.kill()
            for producer in producers:
                producer.stop()
    assert result.exit_code == 0, result.stderr
    note = json.loads(result.stdout)
    assert (note["keys"], note["streams"]) == (3, 3)
    assert run("restore", str(tmp_path / "b.rdb"), str(tmp_path / "new")).exit_code == 0
    with running_penstock(data=tmp_path / "new") as restored:
        client = restored.client()
        total = client.xlen("kept")
        for number, least in enumerate(before):
            found = numbers(client, f"s{number}")
            assert found == list(range(len(found)))
            assert len(found) >= least
            total += len(found)
        assert total == note["entries"]
        assert client.xpending("kept", "g")["pending"] == 1
        client.xadd("s0", {"n": 0})
        restored.kill()  # from now on it has a log
        restored.start()
        assert restored.client().xlen("s0") == len(numbers(restored.client(), "s0")) > before[0]


def test_a_directory_gets_a_name_with_the_time(server: PenstockServer, tmp_path: Path) -> None:
    server.client().xadd("orders", {"a": 1})
    result = run("backup", "--url", url_of(server.port), str(tmp_path))
    assert result.exit_code == 0, result.stderr
    note_file, backup = sorted(tmp_path.iterdir(), key=lambda path: path.suffix)
    assert backup.name.startswith("penstock-20")
    assert note_file.name == f"{backup.name}.json"
    assert result.stdout.startswith(f"{backup}: ")
    assert backup.stat().st_mode & 0o077 == 0
    note = json.loads(note_file.read_text())
    assert note["source"] == f"127.0.0.1:{server.port}"
    assert note["size"] == backup.stat().st_size
    assert run("check", str(backup)).exit_code == 0


def test_a_backup_of_redis_is_restored(redis_server: RedisServer, tmp_path: Path) -> None:
    redis_server.client.config_set("repl-diskless-sync-delay", 0)
    redis_server.client.xadd("orders", {"a": 1})
    result = run("backup", "--url", url_of(redis_server.port), str(tmp_path / "b.rdb"))
    assert result.exit_code == 0, result.stderr
    assert run("restore", str(tmp_path / "b.rdb"), str(tmp_path / "new")).exit_code == 0
    with running_penstock(data=tmp_path / "new") as restored:
        assert restored.client().xlen("orders") == 1


def test_types_that_penstock_does_not_hold_are_refused(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    redis_server.client.config_set("repl-diskless-sync-delay", 0)
    redis_server.client.hset("hash", "a", "1")
    result = run("backup", "--url", url_of(redis_server.port), str(tmp_path / "b.rdb"))
    assert result.exit_code == 1
    assert "the snapshot cannot be used" in result.stderr
    assert "hash" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_files_are_never_replaced(server: PenstockServer, tmp_path: Path) -> None:
    (tmp_path / "b.rdb").write_text("mine")
    result = run("backup", "--url", url_of(server.port), str(tmp_path / "b.rdb"))
    assert result.exit_code == 1
    assert "exists already" in result.stderr
    assert (tmp_path / "b.rdb").read_text() == "mine"
    result = run("backup", "--url", url_of(server.port), str(tmp_path / "none" / "b.rdb"))
    assert "is not a directory" in result.stderr


def test_a_user_without_the_right_is_refused(server: PenstockServer, tmp_path: Path) -> None:
    client = server.client()
    client.acl_setuser("guest", enabled=True, nopass=True, commands=["+@read"])
    url = f"redis://guest:any@127.0.0.1:{server.port}/0"
    result = run("backup", "--url", url, str(tmp_path / "b.rdb"))
    client.acl_deluser("guest")
    assert result.exit_code == 1
    assert "NOPERM" in result.stderr
    assert list(tmp_path.iterdir()) == []


EMPTY = b"REDIS0010\xff" + bytes(8)
FULL = b"+FULLRESYNC " + SOME_ID + b" 7\r\n\n\n"
MISBEHAVING = {
    "another reply": (b"+CONTINUE\r\n", "refuses a snapshot: +CONTINUE"),
    "an error": (b"-LOADING not yet\r\n", "refuses a snapshot: LOADING not yet"),
    "a wrong id": (b"+FULLRESYNC x 7\r\n", "announces a snapshot wrongly"),
    "a wrong offset": (b"+FULLRESYNC " + SOME_ID + b" x\r\n", "announces a snapshot wrongly"),
    "no snapshot": (FULL + b"+OK\r\n", "instead of a snapshot"),
    "an endless line": (b"x" * 10_000, "a line without an end"),
    "damage": (FULL + b"$18\r\n" + b"x" * 18, "the snapshot cannot be used"),
    "bytes behind the end": (FULL + b"$20\r\n" + EMPTY + b"xx", "more bytes follow its end"),
    "half a snapshot": (FULL + b"$100\r\nREDIS0010", "closed the connection in the middle"),
    "half a marked one": (FULL + b"$EOF:" + SOME_ID + b"\r\n" + EMPTY, "in the middle"),
}


@pytest.mark.parametrize("name", MISBEHAVING)
def test_a_server_that_misbehaves_leaves_no_file(name: str, tmp_path: Path) -> None:
    sent, said = MISBEHAVING[name]
    # The server ends after its last reply: the command after it is never sent.
    with FalsePrimary([b"+OK\r\n", b"-ERR unknown option\r\n", sent]) as primary:
        closing = threading.Timer(1, primary.drop)
        closing.start()
        result = run("backup", "--url", url_of(primary.port), str(tmp_path / "b.rdb"))
        closing.cancel()
    assert result.exit_code == (3 if "the middle" in said else 1)
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_empty_snapshot_with_a_mark(tmp_path: Path) -> None:
    sent = FULL + b"$EOF:" + SOME_ID + b"\r\n" + EMPTY + SOME_ID
    with FalsePrimary([b"+OK\r\n", b"+OK\r\n", sent]) as primary:
        result = run("backup", "--url", url_of(primary.port), str(tmp_path / "b.rdb"), "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["offset"] == 7
    assert (tmp_path / "b.rdb").read_bytes() == EMPTY


def test_a_server_that_is_away(tmp_path: Path) -> None:
    result = run("backup", "--url", "redis://127.0.0.1:1/0", str(tmp_path / "b.rdb"))
    assert result.exit_code == 3
    assert "cannot reach 127.0.0.1:1: " in result.stderr


# --- Restoring -------------------------------------------------------------------------------------------


@pytest.fixture
def backup(server: PenstockServer, tmp_path: Path) -> Path:
    server.client().xadd("orders", {"a": 1})
    path = tmp_path / "b.rdb"
    assert run("backup", "--url", url_of(server.port), str(path)).exit_code == 0
    return path


def refused(backup: Path, directory: Path) -> str:
    result = run("restore", str(backup), str(directory))
    assert result.exit_code == 1
    return result.stderr


def test_damage_and_mistakes_are_found(backup: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert "No such file" in refused(tmp_path / "none.rdb", new)
    new.mkdir()
    (new / "mine").write_text("x")
    assert "is not an empty directory" in refused(backup, new)
    assert [path.name for path in new.iterdir()] == ["mine"]
    (new / "mine").unlink()
    whole = backup.read_bytes()
    backup.write_bytes(whole[:-1])
    assert "cannot be used" in refused(backup, new)
    middle = len(whole) // 2
    backup.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    assert "b.rdb" in refused(backup, new) or "temp-restore.rdb" in refused(backup, new)
    backup.write_bytes(EMPTY)
    assert "is not the file that its note describes" in refused(backup, new)
    (tmp_path / "b.rdb.json").write_text("{}")
    assert "not a note of a backup" in refused(backup, new)
    assert list(new.iterdir()) == []
    (tmp_path / "b.rdb.json").unlink()
    backup.write_bytes(whole)
    result = run("restore", str(backup), str(new), "--json")
    assert result.exit_code == 0
    assert "only the checksum inside" in result.stderr
    assert (new / "dump.rdb").read_bytes() == whole
