"""A producer that fails: the caller gets its error and does not wait forever."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from penstock.demo.producers import ProducerLost
from penstock.demo.run import STREAM, Plan, Producing, Watcher
from tests.support.servers.penstock_server import running_penstock


def test_an_error_of_a_producer_ends_the_wait(tmp_path: Path) -> None:
    failed = threading.Event()
    watcher = Watcher(lambda _: None, lambda _name, _count: None)
    with running_penstock() as server, server.client() as client:
        client.set(STREAM, "no stream")
        url = f"redis://127.0.0.1:{server.port}"
        producing = Producing(url, Plan(tmp_path, 1_000, 2, 1), watcher, on_failure=failed.set)
        producing.start()
        with pytest.raises(ProducerLost, match="WRONGTYPE"):
            producing.result()
    assert failed.is_set()
