"""The line before a batch."""

from __future__ import annotations

import pytest

from penstock.persist.batch import (
    HEAD_BYTES_MAX,
    encode_batch,
    is_newer,
    parse_batch_or_none,
    synced_after,
)

DATA = b"*1\r\n$4\r\nPING\r\n"


def whole(data: bytes, synced: int) -> bytes:
    return encode_batch(data, synced) + data


def test_a_line_tells_what_it_was_made_of() -> None:
    line = encode_batch(DATA, 1042)
    assert line == b"#PSCRC:1:14:%s:1042\r\n" % line.split(b":")[3]
    batch = parse_batch_or_none(line)
    assert batch is not None
    assert (batch.head_bytes, batch.size, batch.synced) == (len(line), 14, 1042)
    assert len(encode_batch(b"x" * 1000, 10**18 - 1)) < HEAD_BYTES_MAX


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"#TS:1700000000\r\n",
        b"#PSCRC:1:14:8c1f33a0:0",
        b"#PSCRC:1:14:8c1f33a0:0\n",
        b"#PSCRC:1:14:8c1f33a:0\r\n",
        b"#PSCRC:1:-1:8c1f33a0:0\r\n",
        b"#PSCRC:1:" + b"9" * 19 + b":8c1f33a0:0\r\n",
        b"#PSCRC:2:14:8c1f33a0:0\r\n",
        b"#PSCRC:14:8c1f33a0:0\r\n",
    ],
)
def test_a_line_that_is_none_is_not_taken_for_one(line: bytes) -> None:
    assert parse_batch_or_none(line) is None


def test_a_line_of_a_later_version_is_known_as_such() -> None:
    assert is_newer(b"#PSCRC:2:14:8c1f33a0:0\r\n")
    assert not is_newer(b"#PSCRC:1:14:8c1f33a0:0\r\n")
    assert not is_newer(b"#PSCRC:x\r\n")


def test_the_largest_claim_of_a_whole_batch_counts() -> None:
    data = b"?" * 100 + whole(DATA, 20) + whole(DATA, 90) + whole(DATA, 50)
    assert synced_after(data, 0) == 90
    torn = data.replace(whole(DATA, 90), encode_batch(DATA, 90) + DATA.lower())
    assert synced_after(torn, 0) == 50
    assert synced_after(data[:-1], len(data) - 20) == 0


def test_a_batch_inside_of_a_value_that_claims_what_is_behind_it_is_not_believed() -> None:
    """Or whoever may write a value could have the next start after a power cut refused."""
    data = b"?" * 100 + whole(b"", 101)
    assert synced_after(data, 0) == 0
    assert synced_after(data, 0, offset=1) == 101
