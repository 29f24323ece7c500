"""Hand-made streams of Redis 8.6 and 8.8: names of producers, and entries that nobody owns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.core.idempotency import COUNT_MAX, DURATION_S_MAX, SIZE_MAX
from penstock.core.stream import Stream
from penstock.errors import CorruptData
from penstock.persist.rdb.dump import dump_value
from tests.support.engine.streams import pending_of, sid
from tests.support.rdb.by_hand import NODE_KEY, group_bytes, producers_bytes, stream_bytes
from tests.support.rdb.dump_payloads import DumpBench, body_of, sealed
from tests.support.rdb.whole_files import key, rdb_file, read_all, read_one
from tests.support.servers.raw_redis import Refusal

OTHER_KEY = sid("1700000000000-5").key
A = (b"a", "1700000000000-0")
B = (b"b", "1700000000000-5")


def stream_in(data: bytes, kind: int) -> Stream:
    value = read_one(rdb_file(key(kind, b"s", data), version=14))
    assert isinstance(value, Stream)
    return value


# --- Producers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [26, 27])
def test_producers_with_their_names_and_counters(kind: int) -> None:
    """A name's entry need not be in the stream, nor below its last id: both can happen in Redis."""
    producers = producers_bytes(
        (b"p", [A, B]), (b"q", [A]), duration_s=7, size_max=3, added=20, duplicates=4
    )
    stream = stream_in(stream_bytes(kind, producers=producers), kind)
    settings, known = stream.idempotency_settings, stream.idempotency
    assert (settings.duration_s, settings.size_max) == (7, 3)
    assert known is not None
    assert (known.added, known.duplicates) == (20, 4)
    assert known.producers == {b"p": {b"a": sid(A[1]), b"b": sid(B[1])}, b"q": {b"a": sid(A[1])}}
    assert list(known.producers) == [b"q", b"p"]  # D2
    assert dump_value(stream, 13, compress=False) == sealed(
        bytes([26]) + stream_bytes(26, producers=producers), 13
    )


@pytest.mark.parametrize(
    ("duration_s", "size_max"), [(1, 1), (DURATION_S_MAX, SIZE_MAX), (100, 100)]
)
def test_settings_at_their_limits(duration_s: int, size_max: int) -> None:
    producers = producers_bytes((b"p", [A]), duration_s=duration_s, size_max=size_max)
    settings = stream_in(stream_bytes(26, producers=producers), 26).idempotency_settings
    assert (settings.duration_s, settings.size_max) == (duration_s, size_max)


def test_as_many_names_as_there_may_be() -> None:
    names = [(b"%d" % number, f"{number + 1}-0") for number in range(SIZE_MAX)]
    producers = producers_bytes((b"p", names), size_max=SIZE_MAX, added=SIZE_MAX)
    stream = stream_in(stream_bytes(26, producers=producers), 26)
    assert stream.idempotency is not None
    assert stream.idempotency.names_count() == SIZE_MAX


@pytest.mark.parametrize(
    ("stored", "count"),
    [(0, 0), (COUNT_MAX, COUNT_MAX), (2**63, COUNT_MAX), (2**64 - 1, COUNT_MAX)],
)
def test_counters_that_wrapped_in_redis_are_read_as_the_maximum(stored: int, count: int) -> None:
    producers = producers_bytes((b"p", [A]), added=stored, duplicates=stored)
    known = stream_in(stream_bytes(26, producers=producers), 26).idempotency
    assert known is not None
    assert (known.added, known.duplicates) == (count, count)


def test_a_producer_without_names_is_left_out() -> None:
    """Redis 8.6.2 writes one after an XADD with IDMP that failed because all ids are used up."""
    producers = producers_bytes((b"p", []), (b"q", [A]))
    known = stream_in(stream_bytes(26, producers=producers), 26).idempotency
    assert known is not None
    assert list(known.producers) == [b"q"]
    alone = stream_in(stream_bytes(26, producers=producers_bytes((b"p", []))), 26)
    assert alone.idempotency is None


# --- Entries that nobody owns -------------------------------------------------------------------------


def test_returned_entries_are_in_their_group_and_have_no_consumer() -> None:
    pending = [NODE_KEY, OTHER_KEY]
    groups = group_bytes(27, pending, [(b"a", [])], [OTHER_KEY, NODE_KEY])
    stream = stream_in(stream_bytes(27, groups=groups), 27)
    assert stream.groups is not None
    group = stream.groups.find(b"g")
    assert list(group.returned) == [OTHER_KEY, NODE_KEY]
    # Redis writes a delivery time of 0 for them; here it is always 0.
    assert [row[1:] for row in pending_of(group)] == [(b"", 0, 3), (b"", 0, 3)]
    payload = dump_value(stream, 14, compress=False)
    assert body_of(payload).endswith(b"\x02" + OTHER_KEY + NODE_KEY + producers_bytes())


def test_a_returned_entry_and_one_with_a_consumer() -> None:
    groups = group_bytes(27, [NODE_KEY, OTHER_KEY], [(b"a", [NODE_KEY])], [OTHER_KEY])
    stream = stream_in(stream_bytes(27, groups=groups), 27)
    assert stream.groups is not None
    rows = pending_of(stream.groups.find(b"g"))
    assert [(row[1], row[2]) for row in rows] == [(b"a", 1234), (b"", 0)]


# --- What is refused ----------------------------------------------------------------------------------


def with_producers(**given: int) -> bytes:
    return stream_bytes(26, producers=producers_bytes((b"p", [A]), **given))


def with_names(*producers: tuple[bytes, list[tuple[bytes, str]]], size_max: int = 100) -> bytes:
    return stream_bytes(26, producers=producers_bytes(*producers, size_max=size_max))


def with_group(
    pending: list[bytes], consumers: list[tuple[bytes, list[bytes]]], returned: list[bytes]
) -> bytes:
    return stream_bytes(27, groups=group_bytes(27, pending, consumers, returned))


REFUSED: list[tuple[int, Callable[[], bytes], str]] = [
    (26, lambda: with_producers(duration_s=0), "keeps 100 names for 0 seconds"),
    (26, lambda: with_producers(duration_s=DURATION_S_MAX + 1), "for 86401 seconds"),
    (26, lambda: with_producers(duration_s=2**64 - 1), "the limits are 10000 and 86400"),
    (26, lambda: with_producers(size_max=0), "keeps 0 names"),
    (26, lambda: with_producers(size_max=SIZE_MAX + 1), "keeps 10001 names"),
    (26, lambda: with_names((b"p", [A]), (b"p", [B])), "a second producer b'p'"),
    (26, lambda: with_names((b"p", []), (b"p", [B])), "a second producer b'p'"),
    (26, lambda: with_names((b"", [A])), "a producer has an empty name"),
    (26, lambda: with_names((b"p", [(b"", A[1])])), "an empty name of producer b'p'"),
    (26, lambda: with_names((b"p", [A, A])), "a second name b'a' of producer b'p'"),
    (26, lambda: with_names((b"p", [A, B]), size_max=1), "producer b'p' has 2 names, of 1"),
    (26, lambda: with_names((b"p", [(b"a", "0-0")])), "name b'a' stands for 0-0"),
    (26, lambda: with_names((b"p", [A]))[:-4], "bytes are missing"),
    (27, lambda: with_group([], [], [NODE_KEY]), "is returned, but not in its group"),
    (
        27,
        lambda: with_group([NODE_KEY], [(b"a", [NODE_KEY])], [NODE_KEY]),
        "1700000000000-0 is returned and has a consumer",
    ),
    (27, lambda: with_group([NODE_KEY], [], [NODE_KEY, NODE_KEY]), "is returned twice"),
    (27, lambda: with_group([NODE_KEY], [(b"a", [])], []), "1 pending entries of group b'g'"),
    (
        27,
        lambda: with_group([NODE_KEY], [(b"a", [NODE_KEY]), (b"b", [NODE_KEY])], []),
        "is pending for two consumers",
    ),
]


@pytest.mark.parametrize(("kind", "stream", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_an_invalid_stream_is_refused(kind: int, stream: Callable[[], bytes], said: str) -> None:
    body = stream()
    data = rdb_file(key(kind, b"orders", body), version=14)
    if said == "bytes are missing":
        data = data[:-9]
    with pytest.raises(CorruptData) as caught:
        read_all(data, deep=True)
    assert said in str(caught.value)
    assert str(caught.value).startswith("test.rdb: the key b'orders': ")
    assert 9 < caught.value.offset <= len(data)
    bench = DumpBench("8.8")
    reply = bench.run("RESTORE", "s", 0, sealed(bytes([kind]) + body, 14))
    assert reply == Refusal("ERR Bad data format")
    assert bench.ask("EXISTS s") == 0


@pytest.mark.parametrize("kind", [15, 19, 21, 26, 27])
def test_no_entry_is_pending_for_two_consumers(kind: int) -> None:
    """CVE-2026-63639 of Valkey, and Redis's fixes of July 2026: a row of two consumers was freed twice."""
    bench = DumpBench("8.8")
    for consumers in ([(b"a", [NODE_KEY]), (b"b", [NODE_KEY])], [(b"a", [NODE_KEY, NODE_KEY])]):
        groups = group_bytes(kind, [NODE_KEY], consumers)
        body = bytes([kind]) + stream_bytes(kind, groups=groups)
        assert bench.run("RESTORE", "s", 0, sealed(body, 14)) == Refusal("ERR Bad data format")


@pytest.mark.parametrize("kind", [15, 19, 21, 26, 27])
def test_every_entry_of_a_consumer_is_in_its_group(kind: int) -> None:
    bench = DumpBench("8.8")
    for pending in ([], [OTHER_KEY]):
        groups = group_bytes(kind, pending, [(b"a", [NODE_KEY])])
        body = bytes([kind]) + stream_bytes(kind, groups=groups)
        assert bench.run("RESTORE", "s", 0, sealed(body, 14)) == Refusal("ERR Bad data format")
