"""The files of every release can be read: tests/fixtures/releases, written by tools/release_files.py."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from penstock._version import VERSION
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb.reader import RdbReader
from tests.support.servers.penstock_server import PenstockServer, running_penstock
from tools.release_files import connect, state_of

SECONDS_MAX = 30.0
# The types of values that release 0.1.0 reads: strings, lists, and streams of Redis 5 to 7.
OF_0_1_0 = {rdb_format.STRING, *rdb_format.LIST_TYPES} | {
    rdb_format.STREAM_1,
    rdb_format.STREAM_2,
    rdb_format.STREAM_3,
}
RELEASES = sorted((Path(__file__).parents[1] / "fixtures" / "releases").iterdir())


def test_there_are_files_of_this_release() -> None:
    assert VERSION in [path.name for path in RELEASES], "run tools/release_files.py"


@pytest.mark.parametrize("form", ["log", "snapshot"])
@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_a_server_starts_on_the_files_of_a_release(
    release: Path, form: str, tmp_path: Path
) -> None:
    expected = json.loads((release / "state.json").read_text())
    shutil.copytree(release / form, tmp_path / "data")
    with running_penstock(data=tmp_path / "data") as server:
        assert state_of(connect(server.port)) == expected
        server.client().xadd("orders", {"n": 1})
        server.kill()
        server.start()  # from its own log
        client = connect(server.port)
        assert client.xlen("orders") == expected["length"] + 1
        client.xtrim("orders", maxlen=0)
        assert "cut-" not in server.log()


def test_files_of_the_oldest_compat_version_have_only_types_of_release_0_1_0(
    tmp_path: Path,
) -> None:
    """The way back that docs/upgrades.md describes."""
    with running_penstock("--compat-version", "8.10", data=tmp_path / "data") as server:
        client: Any = server.client()
        client.execute_command("XADD", "s", "IDMP", "producer", "1", "*", "n", 1)
        client.xadd("s", {"n": 2})
        client.xgroup_create("s", "g", id="0")
        client.xreadgroup("g", "ann", {"s": ">"})
        client.execute_command("XNACK", "s", "g", "FAIL", "IDS", 1, client.xrange("s")[0][0])
        client.rpush("jobs", "a")
        assert not types_after_rewrite(server) <= OF_0_1_0
        server.end()
        server.start("--compat-version", "7.4")
        assert types_after_rewrite(server) <= OF_0_1_0


def types_after_rewrite(server: PenstockServer) -> set[int]:
    """The types of all values in the log, rewritten now."""
    with server.client() as client:
        client.bgrewriteaof()
        deadline = time.monotonic() + SECONDS_MAX
        while client.info("persistence")["aof_rewrite_in_progress"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    newest = max(server.data.rglob("*.base.rdb"), key=lambda path: int(path.name.split(".")[-3]))
    with newest.open("rb") as file:
        return {extent.kind for extent in RdbReader(file).extents()}
