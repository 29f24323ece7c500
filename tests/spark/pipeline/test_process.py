"""`penstock pipeline` as a process: stderr, JSON on stdout, exit codes, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.support.command_line import PROGRAM
from tests.support.servers.redis_server import free_port

pytest.importorskip("pyspark", reason=NO_PYSPARK)

TEXT = """[source]
url = "${ORDERS_URL}"
stream = "orders"
group = "lake"
[schema]
qty = "int"
[valid]
positive = "qty > 0"
[archive]
path = "lake"
[reject]
stream = "rejected"
"""
DEADLINE_SECONDS = 600


@contextmanager
def pipeline(broker: Broker, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start `penstock pipeline WORDS`, and end it after the test."""
    with subprocess.Popen(
        [*PROGRAM, "pipeline", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"ORDERS_URL": broker.options["url"]},
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def test_a_check_mentions_a_missing_stream(penstock: Broker, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(TEXT)
    with pipeline(penstock, "check", str(file)) as process:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, err) == (0, b"penstock: the stream orders does not exist yet\n")
    assert b"no problems" in out


def test_a_check_prints_all_problems_and_nothing_else(penstock: Broker, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(TEXT.replace("qty > 0", "qty + 1").replace('"int"', '"integr"'))
    with pipeline(penstock, "check", str(file), "--json") as process:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, err) == (2, b"")
    found = json.loads(out)
    assert found["file"] == str(file)
    assert [one["line"] for one in found["problems"]] == [6, 8]


def test_a_run_ends_with_a_summary_and_by_sigterm(penstock: Broker, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(TEXT)
    client = penstock.client
    for qty in (1, 2, 0, "x"):
        client.xadd("orders", {"qty": qty})
    words = ("run", str(file), "--master", "local[2]", "--conf", "spark.driver.memory=512m")
    with pipeline(penstock, *words, "--once", "--json") as process:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, err) == (0, b"")
    *batches, summary = [json.loads(line) for line in out.splitlines()]
    assert {one["output"] for one in batches} == {"bronze", "silver", "reject"}
    rows = {name: one["rows"] for name, one in summary["summary"]["outputs"].items()}
    assert rows == {"bronze": 4, "silver": 2, "reject": 2}

    last = client.xadd("orders", {"qty": -7})
    port = free_port()
    with pipeline(penstock, *words, "--metrics", str(port)) as process:
        until = time.monotonic() + DEADLINE_SECONDS
        while client.xlen("rejected") < 3:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.1)
        with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.read() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    assert err.endswith(f"metrics: http://127.0.0.1:{port}/metrics\n".encode())
    assert out.split()[:6] == [b"output", b"batches", b"read", b"written", b"late", b"lag"]
    (rejected,) = client.xrevrange("rejected", count=1)
    assert rejected[1][b"_source_id"] == last


def test_a_failure_is_one_line(penstock: Broker, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(TEXT)
    (tmp_path / "lake" / "bronze").mkdir(parents=True)
    (tmp_path / "lake" / "bronze" / "x.parquet").write_text("somebody else's")
    penstock.client.xadd("orders", {"qty": 1})
    words = ("run", str(file), "--once", "--master", "local[2]")
    with pipeline(penstock, *words) as process:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, out) == (1, b"")
    assert err.startswith(b"penstock: output bronze: ")
    assert b"another program has written there" in err
    assert err.count(b"\n") == 1
