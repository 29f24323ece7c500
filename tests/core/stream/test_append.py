"""Appending to a stream: ids, errors, and when a new node begins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock.core import stream_node
from penstock.core.check import check_stream
from penstock.core.frame import Frame
from penstock.core.stream import ENTRY_BYTES_MAX, NodeLimits, Stream
from penstock.core.stream_id import MAX64, StreamID
from penstock.errors import IDNotAboveLast, IDsExhausted, TooLarge
from tests.support.engine.streams import (
    add,
    frame_of,
    ids_of,
    node_at,
    node_keys,
    nodes_of,
    refused,
    sid,
    stream_of,
)
from tests.support.source_tree import ROOT

KV = (b"k", b"v")


# --- Adding ------------------------------------------------------------------------------------------


def test_an_automatic_id_takes_the_clock_and_starts_at_zero() -> None:
    stream = Stream()
    stream.append(1000, frame_of(*KV), 0)
    stream.append(1001, frame_of(*KV), 0)
    assert ids_of(stream) == ["1000-0", "1001-0"]


def test_an_automatic_id_stays_in_the_last_millisecond_when_the_clock_stands_or_steps_back() -> (
    None
):
    stream = Stream()
    for now_ms in (1000, 1000, 999, 0):
        stream.append(now_ms, frame_of(*KV), 0)
    assert ids_of(stream) == ["1000-0", "1000-1", "1000-2", "1000-3"]


def test_an_automatic_id_at_time_zero_is_not_zero() -> None:
    stream = Stream()
    stream.append(0, frame_of(*KV), 0)
    assert ids_of(stream) == ["0-1"]


def test_an_automatic_id_goes_to_the_next_millisecond_when_the_seqs_are_used_up() -> None:
    stream = stream_of(f"1000-{MAX64}")
    stream.append(1000, frame_of(*KV), 0)
    assert stream.last_id == StreamID(1001, 0)


def test_an_id_in_a_given_millisecond_takes_the_next_free_seq() -> None:
    stream = Stream()
    for ms in (0, 0, 7, 7, 8):
        stream.append_in_ms(ms, frame_of(*KV), 0)
    assert ids_of(stream) == ["0-1", "0-2", "7-0", "7-1", "8-0"]


def test_the_pieces_before_the_first_field_are_not_stored() -> None:
    stream = Stream()
    stream.append_at(5, 0, frame_of(b"XADD", b"s", b"5-0", b"name", b"value"), 3)
    assert stream.range().entries() == [(b"5-0", [b"name", b"value"])]


@pytest.mark.parametrize("entry_id", ["5-5", "5-4", "4-9", "0-0"])
def test_an_id_not_above_the_last_is_refused(entry_id: str) -> None:
    stream = stream_of("5-5")
    assert refused(stream, lambda: add(stream, entry_id)) is IDNotAboveLast


def test_zero_is_above_no_id() -> None:
    stream = Stream()
    assert refused(stream, lambda: add(stream, "0-0")) is IDNotAboveLast


def test_the_last_id_counts_even_when_its_entry_is_gone() -> None:
    stream = stream_of("5-5")
    stream.delete(sid("5-5"))
    assert refused(stream, lambda: add(stream, "5-5")) is IDNotAboveLast


@pytest.mark.parametrize("ms", [5, 4])
def test_a_millisecond_that_is_used_up_or_past_is_refused(ms: int) -> None:
    stream = stream_of(f"5-{MAX64}")
    error = refused(stream, lambda: stream.append_in_ms(ms, frame_of(*KV), 0))
    assert error is IDNotAboveLast


def test_nothing_can_be_added_above_the_largest_id() -> None:
    stream = stream_of("1-0", f"{MAX64}-{MAX64}")
    ways: list[Callable[[], None]] = [
        lambda: stream.append(5, frame_of(*KV), 0),
        lambda: stream.append(MAX64, frame_of(*KV), 0),
        lambda: stream.append_at(5, 0, frame_of(*KV), 0),
        lambda: stream.append_at(MAX64, MAX64, frame_of(*KV), 0),
        lambda: stream.append_in_ms(5, frame_of(*KV), 0),
        lambda: stream.append_in_ms(MAX64, frame_of(*KV), 0),
    ]
    assert {refused(stream, way) for way in ways} == {IDsExhausted}


@pytest.mark.parametrize("entry_id", [f"{2**63 - 1}-{2**63 - 1}", f"{2**63}-{2**63}", "0-1"])
def test_ids_at_the_edges_of_64_bits_can_be_first(entry_id: str) -> None:
    stream = stream_of(entry_id)
    assert ids_of(stream) == [entry_id]
    add(stream, f"{MAX64}-{MAX64}")
    assert ids_of(stream) == [entry_id, f"{MAX64}-{MAX64}"]
    check_stream(stream)


@pytest.mark.parametrize("entry_count", [0, 1, 3])
def test_an_entry_of_more_than_a_gibibyte_is_refused_and_changes_nothing(entry_count: int) -> None:
    frame = Frame()
    frame.add(bytes(1 << 20))
    for _ in range(ENTRY_BYTES_MAX >> 20):
        frame.add_span(0, 1 << 20)  # the same bytes again and again: large only by the sum of sizes
    stream = stream_of(*(f"{n}-0" for n in range(1, entry_count + 1)))
    error = refused(stream, lambda: stream.append(1000, frame, 0))
    assert error is TooLarge


def test_a_huge_entry_has_a_node_of_its_own() -> None:
    stream = Stream()
    huge = bytes(range(256)) * 4096 * 5  # 5 MiB: a backlen of four bytes
    add(stream, "1-0")
    add(stream, "2-0", b"k", huge)
    add(stream, "3-0")
    assert node_keys(stream) == ["1-0", "2-0", "3-0"]
    assert stream.range(sid("2-0"), sid("2-0")).entries() == [(b"2-0", [b"k", huge])]
    assert len(node_at(stream, "3-0")) < 4096  # the buffer of the huge node was not kept
    check_stream(stream)


def test_an_entry_with_many_fields_is_read_back() -> None:
    stream = Stream()
    fields = [b"%d" % n for n in range(140_000)]  # more elements than a listpack's header can count
    stream.append_at(1, 0, frame_of(*fields), 0)
    assert stream.range().entries() == [(b"1-0", fields)]
    check_stream(stream)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
@pytest.mark.skipif(
    "PENSTOCK_SANITIZED" in os.environ, reason="the sanitizer ends where memory does"
)
def test_an_append_that_finds_no_memory_changes_nothing() -> None:
    code = """if True:
        import resource
        from pathlib import Path
        from penstock.core.check import check_stream
        from tests.support.engine.streams import frame_of, state_of, stream_of

        frame = frame_of(b"k", bytes(1 << 25))
        for _ in range(16):
            frame.add_span(frame.start(0), 1)
            frame.add_span(frame.start(1), 1 << 25)
        used = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
        refused = 0
        for entries in (0, 1, 3):
            stream = stream_of(*(f"{n}-0" for n in range(1, entries + 1)))
            before = state_of(stream)
            for room in (50 << 20, 500 << 20):  # the entry has 544 MB
                resource.setrlimit(resource.RLIMIT_AS, (used + room, -1))
                try:
                    stream.append_at(1000, 0, frame, 0)
                except MemoryError:
                    refused += 1
                assert state_of(stream) == before
                check_stream(stream)
        assert refused == 6, refused
    """
    path = os.pathsep.join((str(Path(str(penstock.__file__)).parents[1]), str(ROOT)))
    command = [sys.executable, "-P", "-c", code]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True)


# --- When a node begins ------------------------------------------------------------------------------


def test_a_node_begins_after_as_many_entries_as_are_allowed() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 8)), entries_max=3)
    assert node_keys(stream) == ["1-0", "4-0", "7-0"]


def test_tombstones_count_towards_the_entries_of_a_node() -> None:
    stream = stream_of("1-0", "2-0", entries_max=3)
    stream.delete(sid("1-0"))
    add(stream, "3-0")
    add(stream, "4-0")
    assert node_keys(stream) == ["1-0", "4-0"]


def test_no_limit_on_entries_means_bytes_alone_decide() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 301)), entries_max=0, bytes_max=4096)
    assert node_keys(stream) == ["1-0"]


@pytest.mark.parametrize(("value_bytes", "expected"), [(68, ["1-0"]), (69, ["1-0", "2-0"])])
def test_a_node_begins_when_its_bytes_and_the_raw_bytes_reach_the_limit(
    value_bytes: int, expected: list[str]
) -> None:
    stream = stream_of(entries_max=100, bytes_max=100)
    add(stream, "1-0", b"k", b"7")
    (_, node), *_ = nodes_of(stream)
    assert len(node) == 28
    add(stream, "2-0", b"abc", b"v" * (value_bytes))
    assert len(node) + 3 + value_bytes == (99 if len(expected) == 1 else 100)
    assert node_keys(stream) == expected


@pytest.mark.parametrize("bytes_max", [0, 1 << 40])
def test_no_limit_on_bytes_means_the_hard_limit(bytes_max: int) -> None:
    stream = stream_of(entries_max=100, bytes_max=bytes_max)
    for n in range(1, 4):
        add(stream, f"{n}-0", b"k", b"v" * 100_000)
    assert node_keys(stream) == ["1-0"]


def test_limits_that_change_hold_for_the_next_append() -> None:
    limits = NodeLimits(4096, 2)
    stream = Stream(limits)
    for n in range(1, 4):
        add(stream, f"{n}-0")
    limits.entries_max = 5
    for n in range(4, 9):
        add(stream, f"{n}-0")
    assert node_keys(stream) == ["1-0", "3-0", "8-0"]


def test_a_new_node_takes_the_names_of_its_own_first_entry() -> None:
    stream = stream_of("1-0", entries_max=1)
    add(stream, "2-0", b"other", b"1", b"names", b"2")
    (_, _), (_, second) = nodes_of(stream)
    assert b"\x85other\x06\x85names\x06" in second
    assert second.count(b"other") == 1


def test_live_entries_go_from_127_to_128_and_back() -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, 128)), entries_max=1000)
    assert stream_node.live_count(node_at(stream, "1-0")) == 127
    add(stream, "128-0")
    check_stream(stream)
    assert ids_of(stream) == [f"{n}-0" for n in range(1, 129)]
    assert stream.delete(sid("64-0"))
    check_stream(stream)
    add(stream, "129-0")
    check_stream(stream)
    assert ids_of(stream) == [f"{n}-0" for n in range(1, 130) if n != 64]
