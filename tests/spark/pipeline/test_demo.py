"""`penstock demo` with few orders, and accounts that do not add up."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.demo.accounting import Names, settle
from penstock.demo.orders import Share, Tally, orders_of
from tests.support.servers.penstock_server import penstock_command, running_penstock

ORDERS = 6_000
END_SECONDS_MAX = 600


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "run"


@pytest.fixture(scope="module")
def said(place: Path) -> str:
    words = penstock_command("demo", "--orders", str(ORDERS), "--dir", str(place))
    ended = subprocess.run(
        words, capture_output=True, text=True, timeout=END_SECONDS_MAX, check=False
    )
    logs = [log.read_text()[-3000:] for log in place.glob("*.log")]
    assert ended.returncode == 0, (ended.stdout, ended.stderr, *logs)
    return ended.stdout


def test_the_pipeline_was_killed_and_the_accounts_hold(said: str) -> None:
    assert "killing the pipeline (kill -9)" in said
    assert "WRONG" not in said
    assert re.search(rf"archived \(bronze\)\D+{ORDERS:,}\D+{ORDERS:,}\D+ok", said)


def test_the_output_names_all_directories(said: str, place: Path) -> None:
    for path in (place / "lake", place / "orders.toml", place / "data"):
        assert str(path) in said
        assert path.exists()


def test_wrong_accounts_are_found(said: str, place: Path) -> None:
    sent = Tally()
    for producer in range(4):
        for order in orders_of(Share(1, producer, 4, ORDERS)):
            sent.count(order)
    names = Names(
        "orders", "lake", "orders:rejected", "orders:by_minute", place / "lake", "revenue_by_minute"
    )
    with running_penstock(data=place / "data") as server, server.client() as client:
        assert settle(client, names, sent).hold
        assert not settle(client, names, replace(sent, orders=sent.orders + 1)).hold
        client.xadd("orders:rejected", {"_reason": "has_sku"})
        wrong = [line.what for line in settle(client, names, sent).lines if not line.holds]
    assert wrong == [
        "rejected (dead-letter stream)",
        "  reason has_sku",
        "valid + rejected",
    ]


def test_an_existing_directory_is_refused(said: str, place: Path) -> None:
    words = penstock_command("demo", "--dir", str(place))
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "exists already; name a new directory" in ended.stderr
