"""Offsets in checkpoints, of this and every earlier version."""

from __future__ import annotations

import json

import pytest

from penstock.core.stream_id import SMALLEST, StreamID
from penstock.spark.source.offsets import (
    Claim,
    Offset,
    OffsetError,
    Position,
    SharedOffset,
    parse_offset,
    parse_shared_offset,
)
from tests.support.source_tree import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "offsets"

EXCLUSIVE = Offset(
    {"orders": Position(StreamID(1700000000000, 3), 4), "returns": Position(SMALLEST, None)}
)
SHARED = SharedOffset(
    "spark-5f0c",
    7,
    {"orders": Claim(("1-0", "1700000000000-18446744073709551615"), {"1-0": 3})},
)


def test_an_offset_of_version_1_is_read_and_written() -> None:
    golden = (FIXTURES / "exclusive-1.json").read_text()
    assert parse_offset(json.loads(golden)) == EXCLUSIVE
    assert json.dumps(EXCLUSIVE.to_json(), sort_keys=True) == golden.strip()


def test_a_shared_offset_of_version_1_is_read_and_written() -> None:
    golden = (FIXTURES / "shared-1.json").read_text()
    assert parse_shared_offset(json.loads(golden)) == SHARED
    assert json.dumps(SHARED.to_json(), sort_keys=True) == golden.strip()


def test_a_later_version_is_refused() -> None:
    with pytest.raises(OffsetError, match="version 2, and this penstock reads version 1"):
        parse_offset({"version": 2, "streams": {}})
    with pytest.raises(OffsetError, match="version None"):
        parse_shared_offset({})


def test_a_query_cannot_change_its_mode() -> None:
    with pytest.raises(OffsetError, match="not written in mode exclusive"):
        parse_offset(SHARED.to_json())
    with pytest.raises(OffsetError, match="not written in mode shared"):
        parse_shared_offset(EXCLUSIVE.to_json())


@pytest.mark.parametrize("at", [{}, {"id": "x", "n": 1}, {"id": "1-0", "n": "1"}, "1-0"])
def test_a_damaged_offset_is_refused(at: object) -> None:
    with pytest.raises(OffsetError, match="damaged"):
        parse_offset({"version": 1, "streams": {"s": at}})
