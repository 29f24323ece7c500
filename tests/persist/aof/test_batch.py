"""The line before a batch."""

from __future__ import annotations

import zlib

import pytest

from penstock.persist.aof.batch import (
    HEAD_BYTES_MAX,
    behind_damage,
    count_whole,
    encode_batch,
    is_damaged,
    is_newer,
    parse_batch_or_none,
    whole_batches,
)

DATA = b"*1\r\n$4\r\nPING\r\n"


def whole(data: bytes, synced: int, offset: int) -> bytes:
    return encode_batch(data, synced, offset) + data


def sealed(line: bytes, offset: int) -> bytes:
    """A line with a valid checksum of its own, whatever it says."""
    return line + b"%08x\r\n" % zlib.crc32(b"%d:%s" % (offset, line))


def test_a_line_tells_what_it_was_made_of() -> None:
    line = encode_batch(DATA, 1042, 2000)
    assert line == sealed(b"#PSCRC:1:14:%08x:1042:" % zlib.crc32(DATA), 2000)
    batch = parse_batch_or_none(line + DATA, 2000)
    assert batch is not None
    assert (batch.head_bytes, batch.size, batch.synced) == (len(line), 14, 1042)
    assert batch.crc == zlib.crc32(DATA)


def test_the_longest_line_is_not_longer_than_it_may_be() -> None:
    line = sealed(b"#PSCRC:1:%s:00000000:%s:" % (b"9" * 18, b"9" * 18), 0)
    assert parse_batch_or_none(line, 0) is not None
    assert len(line) <= HEAD_BYTES_MAX


def test_a_line_counts_at_its_own_place_only() -> None:
    line = encode_batch(DATA, 0, 100)
    places = [at for at in range(2000) if parse_batch_or_none(line, at) is not None]
    assert places == [100]


def test_no_changed_byte_of_a_line_goes_unnoticed() -> None:
    line = encode_batch(DATA, 1042, 2000)
    for place in range(len(line)):
        for mask in range(1, 256):
            changed = bytearray(line)
            changed[place] ^= mask
            assert parse_batch_or_none(bytes(changed), 2000) is None


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"#TS:1700000000\r\n",
        b"#PSCRC:1:14:8c1f33a0:0\r\n",
        sealed(b"#PSCRC:1:14:8c1f33a0:0:", 0)[:-2],
        sealed(b"#PSCRC:1:14:8c1f33a0:0:", 0)[:-2] + b"\n",
        sealed(b"#PSCRC:1:14:8c1f33a:0:", 0),
        sealed(b"#PSCRC:1:-1:8c1f33a0:0:", 0),
        sealed(b"#PSCRC:1:" + b"9" * 19 + b":8c1f33a0:0:", 0),
        sealed(b"#PSCRC:2:14:8c1f33a0:0:", 0),
        sealed(b"#PSCRC:0:14:8c1f33a0:0:", 0),
        sealed(b"#PSCRC:14:8c1f33a0:0:", 0),
        sealed(b"#PSCRC:1:14:8c1f33a0:0:0:", 0),
    ],
)
def test_other_lines_are_not_parsed_as_a_batch(line: bytes) -> None:
    assert parse_batch_or_none(line, 0) is None


def test_a_line_of_a_later_version_is_known_as_such() -> None:
    assert is_newer(b"#PSCRC:2:14:8c1f33a0:0:1:2:3\r\n")
    assert is_newer(b"#PSCRC:2:whatever it says\r\n")
    assert not is_newer(b"#PSCRC:1:14:8c1f33a0:0:00000000\r\n")
    assert not is_newer(b"#PSCRC:2\r\n")
    assert not is_newer(b"#PSCRC:x\r\n")


def test_a_line_whose_beginning_was_changed_is_known_by_its_end() -> None:
    line = encode_batch(DATA, 0, 0)
    assert not is_damaged(line)
    for place in range(1, len(b"#PSCRC:")):
        changed = bytearray(line)
        changed[place] ^= 1
        assert is_damaged(bytes(changed))
    assert is_damaged(b"#" + line)
    assert not is_damaged(b"#TS:1700000000\r\n")
    assert not is_damaged(b"# a remark: 1:2:3\r\n")


def test_valid_batches_after_a_place_are_counted() -> None:
    data = b"?" * 100
    for synced in (20, 90, 50):
        last = len(data)
        data += whole(DATA, synced, last)
    assert count_whole(data, 0) == 3
    assert count_whole(data, last) == 1
    assert count_whole(data[:-1], last) == 0
    assert count_whole(data, last + 1) == 0
    first = 100 + len(whole(DATA, 20, 100))
    torn = data[:first] + data[first:].replace(DATA, DATA.lower(), 1)
    assert count_whole(torn, 0) == 2
    assert list(whole_batches(torn, 0)) == [100, last]


def test_a_place_is_counted_from_the_beginning_of_the_file() -> None:
    data = b"?" * 10 + whole(DATA, 500, 1010)
    assert count_whole(data, 0, offset=1000) == 1
    assert count_whole(data, 0, offset=999) == 0
    assert count_whole(data, 0) == 0


def test_a_batch_that_claims_a_later_sync_is_not_counted() -> None:
    assert count_whole(b"?" * 100 + whole(b"", 101, 100), 0) == 0
    assert count_whole(b"?" * 100 + whole(b"", 100, 100), 0) == 1


def test_a_batch_within_a_whole_one_is_a_value_even_at_its_place() -> None:
    inner = whole(b"", 60, 100 + len(encode_batch(b"x" * 40, 0, 100)))
    data = b"?" * 100 + whole(inner, 0, 100)
    assert count_whole(data, 101) == 1, "its offset is right"
    assert count_whole(data, 0) == 1, "the outer one"
    assert list(whole_batches(data, 0)) == [100]


def test_a_damaged_batch_with_a_valid_line_is_skipped_whole() -> None:
    line = encode_batch(DATA, 0, 1007)
    assert behind_damage(b"?" * 7 + line, 7, 1000) == 7 + len(line + DATA)
    assert behind_damage(b"?" * 7 + line, 7, 1001) == 8
    assert behind_damage(b"?" * 20, 7) == 8
