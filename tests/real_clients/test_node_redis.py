"""A client in another language: node-redis, if node and npm are installed and reach a registry."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.servers.penstock_server import running_penstock

PACKAGE = "redis@5.8.2"
INSTALL_SECONDS_MAX = 120
RUN_SECONDS_MAX = 60
SMOKE = Path(__file__).with_name("smoke.mjs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the package and the program."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("no node and npm on PATH")
    place = tmp_path_factory.mktemp("node")
    shutil.copy(SMOKE, place)
    (place / "package.json").write_text("{}")
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, timeout=INSTALL_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm install {PACKAGE} takes too long")
    if done.returncode:
        pytest.skip(f"npm cannot install {PACKAGE}: {done.stderr.decode(errors='replace')[-300:]}")
    return place


@pytest.mark.parametrize("protocol", [2, 3], ids=["RESP2", "RESP3"])
def test_node_redis_works(folder: Path, protocol: int) -> None:
    with running_penstock() as server:
        command = ["node", SMOKE.name, str(server.port), str(protocol)]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=RUN_SECONDS_MAX, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        seen = json.loads(done.stdout)
        assert "Traceback" not in server.log()
    refused = seen.pop("refused")
    assert refused.startswith("ERR The ID specified in XADD is equal or smaller than")
    assert seen == {
        "ping": "PONG",
        "added": ["1-1", "1-2"],
        "range": [
            {"id": "1-1", "message": {"temp": "21"}},
            {"id": "1-2", "message": {"temp": "22"}},
        ],
        "group": "OK",
        "taken": True,
        "acked": 1,
        "pending": 0,
        "length": 2,
        "waited": True,
        "multi": ["OK", 2, 3],
        "heard": "rain",
        "many": 1000,
    }
