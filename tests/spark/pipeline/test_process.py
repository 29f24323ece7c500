"""`penstock pipeline`: stderr, JSON on stdout, exit codes; and as a process, with a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
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


def command(broker: Broker, *words: str) -> Result:
    """Run `penstock pipeline WORDS` in this process, which has a Spark session already."""
    environment = {"ORDERS_URL": broker.options["url"]}
    words = ("pipeline", *words)
    return CliRunner().invoke(
        app, words, env=environment, catch_exceptions=False, prog_name="penstock"
    )


@contextmanager
def process(broker: Broker, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start `penstock pipeline WORDS`, and end it after the test."""
    with subprocess.Popen(
        [*PROGRAM, "pipeline", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"ORDERS_URL": broker.options["url"]},
    ) as started:
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()


@pytest.mark.usefixtures("spark")
def test_a_check_mentions_a_missing_stream(penstock: Broker, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(TEXT)
    result = command(penstock, "check", str(file))
    assert result.exit_code == 0
    assert result.stderr == "penstock: the stream orders does not exist yet\n"
    assert "no problems" in result.stdout


@pytest.mark.usefixtures("spark")
def test_a_check_prints_all_problems_and_nothing_else(penstock: Broker, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(TEXT.replace("qty > 0", "qty + 1").replace('"int"', '"integr"'))
    result = command(penstock, "check", str(file), "--json")
    assert (result.exit_code, result.stderr) == (2, "")
    found = json.loads(result.stdout)
    assert found["file"] == str(file)
    assert [one["line"] for one in found["problems"]] == [6, 8]


def add_orders(client: Any) -> None:
    for qty in (1, 2, 0, "x"):
        client.xadd("orders", {"qty": qty})


@pytest.mark.usefixtures("spark")
def test_a_run_prints_its_batches_and_a_summary(penstock: Broker, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(TEXT)
    add_orders(penstock.client)
    result = command(penstock, "run", str(file), "--once", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    *batches, summary = [json.loads(line) for line in result.stdout.splitlines()]
    assert {one["output"] for one in batches} == {"bronze", "silver", "reject"}
    rows = {name: one["rows"] for name, one in summary["summary"]["outputs"].items()}
    assert rows == {"bronze": 4, "silver": 2, "reject": 2}


def test_a_process_prints_nothing_else_and_ends_by_sigterm(
    penstock: Broker, tmp_path: Path
) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(TEXT)
    add_orders(penstock.client)
    port = free_port()
    words = ("run", str(file), "--master", "local[2]", "--conf", "spark.driver.memory=512m")
    with process(penstock, *words, "--metrics", str(port)) as started:
        until = time.monotonic() + DEADLINE_SECONDS
        while penstock.client.xlen("rejected") < 2:
            assert started.poll() is None, started.communicate()
            assert time.monotonic() < until
            time.sleep(0.1)
        with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.read() == b"ready\n"
        started.send_signal(signal.SIGTERM)
        out, err = started.communicate(timeout=DEADLINE_SECONDS)
    assert started.returncode == 0
    assert err == f"penstock: metrics: http://127.0.0.1:{port}/metrics\n".encode()
    assert out.split()[:6] == [b"output", b"batches", b"read", b"written", b"late", b"lag"]


@pytest.mark.usefixtures("spark")
def test_a_failure_is_one_line(penstock: Broker, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    file.write_text(TEXT)
    (tmp_path / "lake" / "bronze").mkdir(parents=True)
    (tmp_path / "lake" / "bronze" / "x.parquet").write_text("somebody else's")
    penstock.client.xadd("orders", {"qty": 1})
    result = command(penstock, "run", str(file), "--once")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("penstock: output bronze: ")
    assert "another program has written there" in result.stderr
    assert result.stderr.count("\n") == 1
