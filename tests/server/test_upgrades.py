"""The files of every release can be read: tests/fixtures/releases, written by tools/release_files.py."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from penstock._version import VERSION
from tests.support.servers.penstock_server import running_penstock
from tools.release_files import connect, state_of

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
