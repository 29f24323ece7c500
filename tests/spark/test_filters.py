"""Filters on _stream, _id and _timestamp: the same rows as without push-down, from shorter reads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.support.campaign import cases, seed

pytest.importorskip("pyspark", reason=NO_PYSPARK)

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from penstock.core.stream_id import LARGEST, MAX64, SMALLEST, StreamID
from penstock.spark.source.data_source import FILTERS_SETTING, register
from penstock.spark.source.filters import kept, narrowed, spans_of, takes, wants_stream
from penstock.spark.source.planning import IdRange

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ID, TIME, STREAM = ("_id",), ("_timestamp",), ("_stream",)
BASE_MS = 1_700_000_000_000
LATEST_MS = 253_402_300_799_999  # the end of the year 9999

MS = st.one_of(
    st.integers(0, 2000),
    st.integers(BASE_MS - 50, BASE_MS + 50),
    st.integers(0, MAX64),
    st.sampled_from([10**n + d for n in range(20) for d in (-1, 0, 1)]),
)
IDS = st.builds(StreamID, MS, st.one_of(st.integers(0, 12), st.integers(0, MAX64)))
TEXTS = st.one_of(
    IDS.map(str),
    IDS.map(lambda one: str(one.ms)),
    IDS.flatmap(lambda one: st.integers(0, 40).map(lambda n: str(one)[:n])),
    st.text("0159-/:aé", max_size=6),
)
MOMENTS = st.integers(-(10**9), 253_402_300_799_000_000).map(
    lambda us: EPOCH + timedelta(microseconds=us)
)
COMPARISONS = st.sampled_from([EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual])
FILTERS = st.one_of(
    st.builds(lambda kind, text: kind(ID, text), COMPARISONS, TEXTS),
    st.builds(lambda kind, moment: kind(TIME, moment), COMPARISONS, MOMENTS),
    st.builds(lambda text: StringStartsWith(ID, text), TEXTS),
    st.builds(lambda texts: In(ID, tuple(texts)), st.lists(st.none() | TEXTS, max_size=4)),
    st.builds(lambda moments: In(TIME, tuple(moments)), st.lists(MOMENTS, max_size=3)),
    st.sampled_from([IsNotNull(ID), IsNotNull(TIME)]),
)


def batch_of(ids: list[StreamID]) -> pa.RecordBatch:
    """The rows of some ids, as a read makes them."""
    last_ms = 253_402_300_799_999
    moments = [EPOCH + timedelta(milliseconds=one.ms) if one.ms <= last_ms else None for one in ids]
    return pa.RecordBatch.from_arrays(
        [pa.array(map(str, ids), pa.string()), pa.array(moments, pa.timestamp("us", "UTC"))],
        names=["_id", "_timestamp"],
    )


@given(one=FILTERS, ids=st.lists(IDS, max_size=20))
@example(one=GreaterThan(ID, "9"), ids=[StreamID(10, 0), StreamID(9, 0), StreamID(95, 1)])
@example(one=LessThanOrEqual(ID, "1700-5"), ids=[StreamID(1700, 10), StreamID(1, 0)])
def test_every_row_that_passes_is_in_the_spans(one: Filter, ids: list[StreamID]) -> None:
    assert takes(one)
    spans = spans_of(one)
    assert spans == sorted(spans)
    passed = kept(batch_of(ids), [one]).column("_id").to_pylist()
    for entry in ids:
        if str(entry) in passed:
            assert any(first <= entry <= last for first, last in spans)


@given(
    filters=st.lists(FILTERS, max_size=3), ids=st.lists(IDS, max_size=20), pair=st.tuples(IDS, IDS)
)
def test_narrowed_ranges_lose_no_row(
    filters: list[Filter], ids: list[StreamID], pair: tuple[StreamID, StreamID]
) -> None:
    after, end = sorted(pair)
    whole = IdRange(after, end, 3, 7)
    parts = narrowed(whole, filters)
    inside = sorted({one for one in ids if after < one <= end})
    for text in kept(batch_of(inside), filters).column("_id").to_pylist():
        assert (
            sum(part.after < StreamID(*map(int, text.split("-"))) <= part.end for part in parts)
            == 1
        )
    assert all(after <= part.after < part.end <= end for part in parts if part != whole)
    if not filters:
        assert parts == [whole]


def test_the_spans_of_today_are_short() -> None:
    last = StreamID(BASE_MS, MAX64)
    assert spans_of(EqualTo(ID, f"{BASE_MS}-3")) == [(StreamID(BASE_MS, 3),) * 2]
    assert spans_of(EqualTo(ID, f"0{BASE_MS}-3")) == []
    assert spans_of(LessThan(TIME, EPOCH)) == []
    today = IdRange(StreamID(10**12, 0), StreamID(10**13 - 1, 0))
    (part,) = narrowed(today, [GreaterThanOrEqual(ID, f"{BASE_MS}-3")])
    assert part == IdRange(StreamID(BASE_MS, 0).previous(), today.end)
    (part,) = narrowed(today, [LessThan(ID, f"{BASE_MS}-3")])
    assert part == IdRange(today.after, last)
    (part,) = narrowed(today, [StringStartsWith(ID, f"{BASE_MS}-")])
    assert part == IdRange(StreamID(BASE_MS, 0).previous(), last)
    many = In(ID, tuple(f"{BASE_MS + 2 * n}-0" for n in range(101)))
    assert spans_of(many) == [(StreamID(BASE_MS, 0), StreamID(BASE_MS + 200, 0))]
    assert spans_of(IsNotNull(ID)) == [(SMALLEST, LARGEST)]


def test_other_filters_are_left_to_spark() -> None:
    for one in (
        EqualTo(("sku",), "A"),
        EqualTo(("body", "_id"), "1-0"),
        EqualTo(ID, None),
        EqualTo(TIME, "2024-01-01"),
        IsNull(TIME),
        Not(EqualTo(ID, "1-0")),
        StringStartsWith(TIME, "2024"),
        In(ID, (1, 2)),
    ):
        assert not takes(one)
    assert wants_stream(b"\xff", [EqualTo(STREAM, "\\xff")])
    assert not wants_stream(b"b", [LessThan(STREAM, "b")])
    assert not wants_stream(b"b", [In(STREAM, ("a", None))])


@contextmanager
def without_push_down(spark: Any) -> Iterator[Any]:
    """A session of the same application without push-down."""
    session = spark.newSession()
    session.conf.set(FILTERS_SETTING, "false")
    register(session)
    yield session


def random_condition(random_: random.Random, ids: list[str]) -> str:
    """A random SQL condition over ids, times and streams near those that exist."""
    some = random_.choice(ids)
    ms = int(some.partition("-")[0])
    shown_ms = min(ms, LATEST_MS)  # Python has no later moment
    text = random_.choice([some, str(ms), some[:5], f"{ms}-", "2", f"{ms}-10"])
    moment = (
        EPOCH + timedelta(milliseconds=shown_ms, microseconds=random_.choice([0, 1]))
    ).isoformat()
    compare = random_.choice(["=", "<", "<=", ">", ">="])
    return random_.choice(
        [
            f"_id {compare} '{text}'",
            f"_timestamp {compare} timestamp'{moment}'",
            f"_id in ('{some}', '{random_.choice(ids)}', '7-7')",
            f"_stream {compare} 'b'",
            f"_id like '{text}%'",
            "_timestamp is not null",
            f"n {compare} 7",
        ]
    )


def test_random_filters_give_the_same_rows_with_and_without_push_down(
    spark: Any, broker: Broker
) -> None:
    random_ = random.Random(seed())
    ids = [f"{ms}-{n}" for ms in (5, 50, 999, BASE_MS, BASE_MS + 1) for n in range(3, 13)]
    ids.append(f"{MAX64}-1")
    for stream in ("a", "b", "c"):
        for number, one in enumerate(ids):
            broker.client.xadd(stream, {"n": number}, id=one)
    schema = "_stream string, _id string, _timestamp timestamp, n int"

    def rows(session: Any, condition: str) -> list[Any]:
        reader = session.read.format("penstock").options(**broker.options, stream='["a", "b", "c"]')
        found: list[Any] = reader.schema(schema).load().where(condition).collect()
        return sorted(tuple(row) for row in found)

    with without_push_down(spark) as plain:
        everything = plain.createDataFrame(rows(plain, "true"), schema).persist()
        for _ in range(cases(60)):
            count = random_.randint(1, 3)
            condition = " and ".join(random_condition(random_, ids) for _ in range(count))
            expected = sorted(tuple(row) for row in everything.where(condition).collect())
            assert rows(spark, condition) == expected, condition
        everything.unpersist()


def test_pushed_filters_are_in_the_plan_and_shorten_the_read(
    spark: Any, penstock: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    for stream in ("a", "b"):
        for number in range(10):
            penstock.client.xadd(stream, {"n": number}, id=f"{BASE_MS + number}-0")
    reader = spark.read.format("penstock").options(**penstock.options, stream='["a", "b"]')
    frame = reader.schema("_stream string, _id string, _timestamp timestamp, n int").load()
    moment = (EPOCH + timedelta(milliseconds=BASE_MS + 4)).isoformat()
    condition = (
        f"_stream = 'a' and _timestamp >= timestamp'{moment}' and _id < '{BASE_MS + 6}' and n > 3"
    )
    chosen = frame.where(condition)
    chosen.explain("formatted")
    pushed = capsys.readouterr().out.partition("PushedFilters")[2].partition("\n")[0]
    assert "_stream" in pushed
    assert "_timestamp" in pushed
    assert "_id" in pushed
    assert "(n," not in pushed
    assert chosen.rdd.getNumPartitions() == 1
    assert [row.n for row in chosen.collect()] == [4, 5]
