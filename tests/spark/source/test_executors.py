"""Executor processes read from a server and from a cluster, and write no password anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.cluster import ClusterNode, RedisCluster

from tests.spark.conftest import NO_PYSPARK, fill
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_cluster import cluster_problem_or_none, running_cluster
from tests.support.source_tree import ROOT

pytest.importorskip("pyspark", reason=NO_PYSPARK)

SECRET = "not-to-be-seen-0451"
ENTRIES = 100
STREAMS = ("a", "b", "c", "d")  # no node of a cluster of three has all of them
SECONDS_MAX = 900.0


@pytest.fixture(scope="module")
def places() -> Iterator[tuple[dict[str, dict[str, str]], dict[str, list[str]]]]:
    """Options of a server and of a cluster, both with a password, and the ids of their entries."""
    problem = cluster_problem_or_none()
    if problem is not None:
        pytest.skip(problem)
    with running_penstock("--requirepass", SECRET) as server, running_cluster() as cluster:
        for port in cluster.ports:
            with redis.Redis(port=port) as node:
                node.config_set("requirepass", SECRET)
        first = [ClusterNode("127.0.0.1", cluster.ports[0])]  # type: ignore[no-untyped-call]
        common = {"stream": ",".join(STREAMS), "minPartitions": "4"}
        url = f"redis://:{SECRET}@127.0.0.1:{server.port}"
        options = {
            "penstock": {"url": url, **common},
            "cluster": {"url": cluster.url, "password": SECRET, "cluster": "true", **common},
        }
        added: dict[str, list[str]] = {}
        with (
            server.client(password=SECRET) as single,
            RedisCluster(startup_nodes=first, password=SECRET) as many,
        ):
            for name, client in (("penstock", single), ("cluster", many)):
                added[name] = sorted(
                    f"{stream} {one}" for stream in STREAMS for one in fill(client, stream, ENTRIES)
                )
        yield options, added


@pytest.fixture(scope="module")
def run(places: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with everything that a session with executors has written."""
    folder = tmp_path_factory.mktemp("executors")
    command = [sys.executable, "-m", "tests.spark.on_executors", str(folder)]
    with (folder / "driver.log").open("wb") as log:
        subprocess.run(
            command,
            input=json.dumps(places[0]).encode(),
            stdout=log,
            stderr=log,
            cwd=ROOT,
            timeout=SECONDS_MAX,
            check=False,
        )
    assert (folder / "found.json").exists(), (folder / "driver.log").read_text()[-5000:]
    return folder


def events(run: Path) -> list[dict[str, Any]]:
    files = [path for path in (run / "events").rglob("*") if path.is_file()]
    lines = [line for path in files for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.parametrize("name", ["penstock", "cluster"])
@pytest.mark.parametrize("kind", ["batch", "query"])
def test_executors_read_every_entry_once(run: Path, places: Any, name: str, kind: str) -> None:
    rows = json.loads((run / "found.json").read_text())[name][kind]
    assert sorted(f"{stream} {one}" for one, stream, _ in rows) == places[1][name]


def test_both_executors_ran_tasks(run: Path) -> None:
    used = {
        event["Task Info"]["Executor ID"]
        for event in events(run)
        if event["Event"] == "SparkListenerTaskEnd"
    }
    assert used == {"0", "1"}


def test_nothing_that_spark_writes_has_a_password(run: Path) -> None:
    files = [path for path in run.rglob("*") if path.is_file()]  # links are not followed
    names = {path.name for path in files}
    assert {"driver.log", "plan.txt", "error.txt", "stderr"} <= names
    assert "does not fit the type of its column" in (run / "cluster" / "error.txt").read_text()
    assert [str(path) for path in files if SECRET.encode() in path.read_bytes()] == []
