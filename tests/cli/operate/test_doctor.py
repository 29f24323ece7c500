"""`penstock doctor` finds each fault that is planted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import penstock
from penstock.cli.main import app
from penstock.client.replies import Reply
from penstock.doctor.asked import Word
from penstock.doctor.directory import directory_findings
from penstock.doctor.finding import Finding, Severity, ordered
from penstock.doctor.server import server_findings
from penstock.doctor.streams import Limits
from penstock.persist.disk import SystemDisk
from penstock.persist.watched_disk import slow_disk
from tests.support.servers.penstock_server import PenstockServer, running_penstock

SECONDS_MAX = 30.0


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *words], catch_exceptions=False)


def rules(result: Result) -> dict[str, dict[str, str]]:
    """The findings of `--json` by their rule, in their order."""
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return {one["rule"]: one for one in found}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockServer]:
    data = tmp_path_factory.mktemp("doctor") / "data"
    with running_penstock("--maxmemory", "8gb", data=data) as running:
        yield running


@pytest.fixture
def url(server: PenstockServer) -> str:
    server.client().flushall()
    return f"redis://127.0.0.1:{server.port}/0"


def ask(server: PenstockServer, url: str, *words: str) -> dict[str, dict[str, str]]:
    return rules(run("--url", url, "--json", *words))


def test_nothing_is_wrong(server: PenstockServer, url: str) -> None:
    server.client().xadd("orders", {"a": 1})
    result = run("--url", url)
    about_machine = {"disk-full", "slow-disk"}  # of the machine that runs this test
    if not about_machine & ask(server, url).keys():
        assert (result.exit_code, result.stdout) == (0, "nothing is wrong\n")
    assert ask(server, url).keys() <= about_machine


def test_a_group_that_nobody_reads_and_a_dead_consumer(server: PenstockServer, url: str) -> None:
    client = server.client()
    for _ in range(3):
        client.xadd("orders", {"a": 1})
    client.xgroup_create("orders", "packers", "0")
    client.xgroup_create("orders", "nobody", "0")
    client.xreadgroup("packers", "ann\x1b[2J", {"orders": ">"}, count=2)
    assert "dead-consumer" not in ask(server, url)
    result = run("--url", url, "--idle", "0ms", "--json")
    assert result.exit_code == 1
    found = [json.loads(line)["what"] for line in result.stdout.splitlines()]
    assert "group nobody of stream orders has 3 entries to read, and it has no consumers" in found
    assert any(text.startswith("group packers of stream orders has 1 entry ") for text in found)
    assert any(text.startswith(r"consumer ann\x1b[2J of group packers") for text in found)
    assert "\x1b" not in run("--url", url, "--idle", "0ms").stdout


def test_what_workers_keep_for_later_is_no_fault(server: PenstockServer, url: str) -> None:
    client = server.client()
    client.xadd("jobs", {"n": 1}, id="1-1")
    client.xgroup_create("jobs", "g", id="0")
    client.xreadgroup("g", "waiting", {"jobs": ">"})
    client.xadd("jobs:delayed", {"n": 1}, id="1-1")
    client.xgroup_create("jobs:delayed", "g", id="0")
    client.xclaim("jobs:delayed", "g", "-", 0, ["1-1"], force=True, justid=True)
    found = ask(server, url, "--idle", "0ms")
    assert "dead-consumer" not in found
    assert "unread-group" not in found


def test_a_stream_without_retention(server: PenstockServer, url: str) -> None:
    client = server.client()
    for _ in range(10):
        client.xadd("kept", {"a": 1})
        client.xadd("trimmed", {"a": 1}, maxlen=9, approximate=False)
    found = ask(server, url, "--entries", "9")
    assert found["no-retention"]["what"] == "stream kept has 10 entries and was never trimmed"


def test_a_clock_that_was_set_back(server: PenstockServer, url: str) -> None:
    ahead = int(time.time() * 1000) + 3_600_000
    server.client().xadd("orders", {"a": 1}, id=f"{ahead}-0")
    assert "in the future" in ask(server, url)["clock"]["what"]


def test_a_lost_primary(server: PenstockServer, url: str) -> None:
    client = server.client()
    client.replicaof("127.0.0.1", "1")
    try:
        found = ask(server, url)
    finally:
        client.replicaof("NO", "ONE")
    assert found["replica-down"]["severity"] == "danger"
    assert "127.0.0.1:1" in found["replica-down"]["what"]


def test_open_doors_and_no_log() -> None:
    arguments = ("--bind", "0.0.0.0", "--protected-mode", "no")
    with running_penstock(*arguments) as server:
        url = f"redis://127.0.0.1:{server.port}/0"
        result = run("--url", url, "--json")
        assert result.exit_code == 1
        found = rules(result)
        assert found["no-password"]["severity"] == found["no-log"]["severity"] == "danger"
        assert "loses all data" in found["no-log"]["what"]
        assert list(found)[-1] == "no-memory-limit"  # advice comes last
        server.client().config_set("protected-mode", "yes")
        assert ask(server, url)["no-password"]["severity"] == "advice"
        server.client().config_set("requirepass", "secret")
        protected = f"redis://:secret@127.0.0.1:{server.port}/0"
        assert "no-password" not in ask(server, protected)


class Planted:
    """A healthy server with a few other values in INFO."""

    def __init__(self, **values: object) -> None:
        self._values = values

    def ask_or_none(self, *words: Word) -> Reply | None:
        if words[0] == "INFO":
            return "".join(f"{name}:{value}\r\n" for name, value in self._values.items()).encode()
        return None

    def ask_each(self, commands: Sequence[Sequence[Word]]) -> list[Reply | None]:
        return [None for _ in commands]


@pytest.mark.parametrize(
    ("values", "rule", "severity"),
    [
        ({"aof_last_write_status": "err"}, "failing-log", Severity.DANGER),
        ({"rdb_last_bgsave_status": "err"}, "failing-snapshot", Severity.WARNING),
        (
            {"penstock_disk_bytes": 1000, "penstock_disk_free_bytes": 40},
            "disk-full",
            Severity.DANGER,
        ),
        (
            {"penstock_disk_bytes": 1000, "penstock_disk_free_bytes": 99},
            "disk-full",
            Severity.WARNING,
        ),
        ({"penstock_fsync_usec": 50_000}, "slow-disk", Severity.WARNING),
        ({"penstock_tls_expiry_sec": 13 * 86_400}, "certificate", Severity.WARNING),
        ({"penstock_build": "interpreted"}, "interpreted", Severity.WARNING),
        ({"used_memory": 95, "maxmemory": 100}, "memory", Severity.WARNING),
        ({"used_memory": 95, "total_system_memory": 100}, "memory", Severity.DANGER),
    ],
)
def test_what_info_says(values: dict[str, object], rule: str, severity: Severity) -> None:
    (found,) = server_findings(Planted(**values), 0, Limits())
    assert (found.rule, found.severity) == (rule, severity)


def test_an_expired_certificate_is_a_danger() -> None:
    server = Planted(penstock_tls_expiry_sec=1000)
    (found,) = server_findings(server, 1_000_000, Limits())
    assert (found.rule, found.severity) == ("certificate", Severity.DANGER)
    assert not list(server_findings(Planted(penstock_tls_expiry_sec=15 * 86_400), 0, Limits()))


def test_the_server_reports_its_disk(server: PenstockServer, url: str) -> None:
    server.client().xadd("orders", {"a": 1})
    info = server.client().info("penstock")
    assert info["penstock_disk_bytes"] > info["penstock_disk_free_bytes"] > 0
    assert info["penstock_fsync_usec"] > 0


def test_a_user_who_may_not_look(server: PenstockServer, url: str) -> None:
    client = server.client()
    client.acl_setuser("guest", enabled=True, nopass=True, commands=["+@all", "-config", "-info"])
    result = run("--url", f"redis://guest:any@127.0.0.1:{server.port}/0")
    client.acl_deluser("guest")
    assert "not looked at: CONFIG was refused: " in result.stdout
    assert "not looked at: INFO was refused: " in result.stdout


def test_of_many_findings_of_a_rule_some_are_shown(server: PenstockServer, url: str) -> None:
    client = server.client()
    client.xadd("orders", {"a": 1})
    for number in range(13):
        client.xgroup_create("orders", f"g{number:02}", id="0")
    lines = run("--url", url).stdout.splitlines()
    assert (
        "warning: group g09 of stream orders has 1 entry to read, and it has no consumers" in lines
    )
    assert "3 more of the rule unread-group; --json lists them all" in lines
    assert not any("g10" in line for line in lines)
    assert run("--url", url, "--json").stdout.count("unread-group") == 13


def test_a_password_that_is_missing_or_wrong_is_no_clean_bill() -> None:
    with running_penstock("--requirepass", "secret") as server:
        for user in ("", ":wrong@"):
            result = run("--url", f"redis://{user}127.0.0.1:{server.port}/0")
            assert result.exit_code == 1
            assert "refuses the login" in result.stderr
            assert result.stdout == ""
        assert run("--url", f"redis://:secret@127.0.0.1:{server.port}/0").stdout


def test_a_server_that_is_away() -> None:
    assert run("--url", "redis://127.0.0.1:1/0").exit_code == 3


# --- Directories -----------------------------------------------------------------------------------------


@contextmanager
def data(path: Path) -> Iterator[Any]:
    path.mkdir(mode=0o700)
    with penstock.open(str(path)) as database:
        yield database


def found_in(path: Path, disk: SystemDisk | None = None, **limits: int) -> dict[str, Finding]:
    now_ms = time.time_ns() // 1_000_000
    found = directory_findings(str(path), disk or SystemDisk(), now_ms, Limits(**limits))
    return {one.rule: one for one in ordered(found) if one.rule != "disk-full"}


def test_a_sound_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "data"
    with data(place) as database:
        database.xadd("orders", {"a": 1})
    found = found_in(place)
    found.pop("slow-disk", None)  # the machine of this test may be busy
    assert found == {}
    assert [file.name for file in place.glob("temp-doctor*")] == []


def full(path: str) -> os.statvfs_result:
    return os.statvfs_result((4096, 4096, 1000, 10, 10, 0, 0, 0, 0, 255))


def plant_slow_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.cli.operate.doctor.SystemDisk", lambda: slow_disk(0.03))


def plant_full_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.statvfs", full)


def plant_open_directory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.chmod(0o755)


def plant_kept_changes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "appendonlydir" / "cut-appendonly.aof.1.incr.aof-10").write_bytes(b"x")


def plant_kept_data(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "dropped-0123abcd-10").mkdir()


def plant_damage(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "appendonlydir" / "appendonly.aof.manifest").write_bytes(b"damage\n")


def plant_no_log(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (place / "appendonlydir").iterdir():
        file.unlink()
    (place / "appendonlydir").rmdir()


@pytest.mark.parametrize(
    ("plant", "rule"),
    [
        (plant_slow_disk, "slow-disk"),
        (plant_full_disk, "disk-full"),
        (plant_open_directory, "open-directory"),
        (plant_kept_changes, "kept-changes"),
        (plant_kept_data, "kept-changes"),
        (plant_damage, "damaged-files"),
        (plant_no_log, "no-log"),
    ],
)
def test_a_planted_fault(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[Path, pytest.MonkeyPatch], None],
    rule: str,
) -> None:
    place = tmp_path / "data"
    with data(place) as database:
        database.xadd("orders", {"a": 1})
    plant(place, monkeypatch)
    result = run(str(place), "--json")
    assert result.exit_code == 1
    assert rule in rules(result)


def test_streams_of_a_directory(tmp_path: Path) -> None:
    place = tmp_path / "data"
    with data(place) as database:
        for _ in range(5):
            database.xadd("orders", {"a": 1})
        database.xgroup_create("orders", "packers", "0")
        database.xreadgroup("packers", "ann", {"orders": ">"}, count=2)
        database.xadd("later", {"a": 1}, id=f"{int(time.time() * 1000) + 3_600_000}-0")
    found = found_in(place, entries=5, idle_ms=0)
    assert {"clock", "no-retention", "unread-group", "dead-consumer"} <= set(found)


def test_a_missing_directory(tmp_path: Path) -> None:
    result = run(str(tmp_path / "none"))
    assert result.exit_code == 2
    assert "No such file or directory" in result.stderr
