"""Producers that cannot go on: whoever waits for them is told why, and does not wait for ever."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from penstock.demo.producers import ProducerLost
from penstock.demo.run import STREAM, Plan, Producing, Watcher
from tests.support.servers.penstock_server import running_penstock


def test_a_refusal_is_told_and_ends_the_wait(tmp_path: Path) -> None:
    told = threading.Event()
    watcher = Watcher(lambda _: None, lambda _name, _count: None)
    with running_penstock() as server, server.client() as client:
        client.set(STREAM, "no stream")
        url = f"redis://127.0.0.1:{server.port}"
        producing = Producing(url, Plan(tmp_path, 1_000, 2, 1), watcher, on_failure=told.set)
        producing.start()
        with pytest.raises(ProducerLost, match="WRONGTYPE"):
            producing.result()
    assert told.is_set()
