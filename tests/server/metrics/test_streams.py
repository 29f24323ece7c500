"""The metrics of streams and groups: names as labels, and the age of pending entries."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.metrics.text import Page
from penstock.server.metrics.pace import Pace
from penstock.server.metrics.streams import add_streams, shown_name
from tests.support.servers.connections import ServerBench
from tests.support.servers.loops import run_apart

HOUR_MS = 3_600_000


def scraped(bench: ServerBench) -> dict[str, float]:
    """Each sample by its name and its labels in their order."""
    page = Page()
    run_apart(add_streams(page, bench.server, 100, Pace(lambda: 0)))
    samples = [
        one for family in text_string_to_metric_families(page.text()) for one in family.samples
    ]
    found = {f"{one.name}/{'/'.join(one.labels.values())}": one.value for one in samples}
    assert len(found) == len(samples), "a sample twice"
    return found


def test_names_that_look_alike_have_different_labels() -> None:
    bench = ServerBench()
    client = bench.connect()
    names = [b"\xff", rb"\xff", rb"\\xff", b"\\\xff", b"a\\b", "ü".encode()]
    for name in names:
        client.tell("XADD", name, "1-0", "k", "v")
    found = scraped(bench)
    assert sum(name.startswith("penstock_stream_length/") for name in found) == len(names)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        (b"orders", "orders"),
        (b"a\\b", "a\\b"),
        (b"\xff\\", "\\xff\\\\"),
        (b"\\xff", "\\\\xff"),
    ],
)
def test_a_backslash_is_doubled_only_where_it_could_be_misread(name: bytes, label: str) -> None:
    assert shown_name(name) == label


def test_a_pending_entry_is_as_old_as_its_last_delivery() -> None:
    bench = ServerBench()
    client = bench.connect()
    for number in (1, 2):
        client.tell(f"XADD s {number}-0 k v")
    client.tell("XGROUP CREATE s g 0")
    client.tell("XREADGROUP GROUP g ann STREAMS s >")
    age = "penstock_group_oldest_pending_seconds/0/s/g"
    assert scraped(bench)[age] == 0
    client.tell(f"XCLAIM s g ann 0 1-0 IDLE {HOUR_MS}")
    assert scraped(bench)[age] == 3600
    client.tell("XACK s g 1-0")
    assert scraped(bench)[age] == 0


@pytest.mark.parametrize("consumer", ["waiting", "-", "host-12-0123abcd"])
def test_an_entry_of_workers_has_no_age(consumer: str) -> None:
    bench = ServerBench()
    client = bench.connect()
    client.tell("XADD s 1-0 k v")
    client.tell("XGROUP CREATE s g 0")
    client.tell("XREADGROUP GROUP g ann STREAMS s >")
    client.tell(f"XCLAIM s g {consumer} 0 1-0 IDLE {23 * HOUR_MS}")
    assert scraped(bench)["penstock_group_oldest_pending_seconds/0/s/g"] == 0
