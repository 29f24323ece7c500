"""Entries decoded into Arrow, from nodes and from RESP, compared with a simple decoder."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.arrow_batch import BatchBuilder
from penstock.client.inbox import Inbox
from penstock.client.node_rows import NodeRows
from penstock.client.reply_rows import DONE, FULL, RangeReply
from penstock.client.rows import RowLimits
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from penstock.errors import CommandError, ConfigError, CorruptData, ProtocolError, UnreadableValue
from tests.support.engine.streams import frame_of, nodes_of, sid
from tests.support.spark.dumb_columns import Entry, rows_of, same

TEXTS = pa.map_(pa.string(), pa.string())
MOMENT = pa.timestamp("us", tz="UTC")
ALL_TYPES: dict[str, pa.DataType] = {
    "a": pa.string(),
    "b": pa.binary(),
    "c": pa.int8(),
    "d": pa.int16(),
    "e": pa.int32(),
    "f": pa.int64(),
    "g": pa.float32(),
    "h": pa.float64(),
    "i": pa.bool_(),
    "j": pa.date32(),
    "k": MOMENT,
    "l": pa.timestamp("us"),
    "m": pa.decimal128(38, 10),
    "n": pa.decimal128(5, 2),
    "o": pa.decimal128(38, 0),
}
HEAD = {"_stream": pa.string(), "_id": pa.string(), "_timestamp": MOMENT}
TYPED = pa.schema({**HEAD, **ALL_TYPES, "_corrupt": TEXTS})
MAPPED = pa.schema({**HEAD, "fields": TEXTS, "_corrupt": TEXTS})
ENTRIES = pa.schema(
    {"fields": pa.list_(pa.struct({"name": pa.binary(), "value": pa.binary()})), "_id": pa.string()}
)

EDGES = [
    0,
    1,
    127,
    128,
    4095,
    4096,
    32767,
    32768,
    8388607,
    8388608,
    2**31 - 1,
    2**31,
    2**63 - 1,
    2**63,
]
NUMBERS = [b"%d" % (sign * edge + more) for edge in EDGES for sign in (1, -1) for more in (0, -1)]
ODD = [
    b"", b" ", b"-", b"+", b"+5", b"-0", b"007", b"0" * 50 + b"7", b"5.", b".5", b".", b"1_0", b" 1",
    b"1 ", b"1e5", b"1E-5", b"-1.25e2", b"1e400", b"-1e400", b"1e40", b"nan", b"-inf", b"Infinity",
    b"infinit", b"1e", b"0.1", b"-0.0", b"123456789.123456789", b"9007199254740993",
    b"0." + b"0" * 30 + b"1", b"1" * 25, b"9" * 38, b"true", b"FALSE", b"t", b"Yes", b"nO", b"\x111", b"tru",
    b"truer", b"99999.99", b"999.99", b"1000", b"1.005", b"2024-02-29", b"2023-02-29", b"0001-01-01",
    b"0000-01-01", b"9999-12-31", b"2024-13-01", b"2024-1-01", b"1970-01-01T00:00:00Z",
    b"2024-02-29 10:20:30", b"2024-02-29T10:20:30.5+02:00", b"2024-02-29T10:20:30.123456Z",
    b"2024-02-29T10:20:30.1234567Z", b"2024-02-29T24:00:00Z", b"2024-02-29T10:20Z",
    b"0001-01-01T00:00:00+01:00", b"9999-12-31T23:59:59.999999-0001", b"9999-12-31T23:59:59.999999",
    b"2024-02-29T10:20:30-23:59", b"2024-02-29T10:20:30.Z", b"2024-02-29T10:20:30z", b"1700000000000",
    b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", "grün".encode(), "漢字😀".encode(),
    b"\xe6\xbc", b"ascii..\xff", b"x" * 63, b"x" * 64, b"x" * 4095, b"x" * 4096, b"y" * 10_000,
]  # fmt: skip
VALUES = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(ODD), st.binary(max_size=70))
NAMES = st.sampled_from(
    [name.encode() for name in ALL_TYPES] + [b"", b"12", b"\xff", b"other", b"x" * 70]
)
FIELDS = st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=6)
FAR = [
    2**63,
    2**64 - 1,
    253_402_300_799_999,
    253_402_300_800_000,
]  # two are at the end of Spark's range
IDS = st.lists(
    st.tuples(
        st.one_of(st.integers(1, 50), st.sampled_from(FAR)),
        st.one_of(st.integers(0, 3), st.sampled_from([2**63, 2**64 - 1])),
    ),
    max_size=12,
    unique=True,
)  # fmt: skip


@st.composite
def streams(draw: st.DrawFn) -> tuple[Stream, list[Entry]]:
    """A stream of tiny nodes with deleted entries, and the entries that remain."""
    stream = Stream(NodeLimits(4096, draw(st.integers(1, 4))))
    shapes = draw(st.lists(FIELDS, min_size=1, max_size=3))
    left: list[Entry] = []
    for ms, seq in sorted(draw(IDS)):
        names = [name for name, _ in draw(st.sampled_from(shapes))]
        fields = [(name, draw(VALUES)) for name in names]
        stream.append_at(ms, seq, frame_of(*(piece for pair in fields for piece in pair)), 0)
        left.append((b"%d-%d" % (ms, seq), fields))
    for entry in draw(
        st.lists(st.sampled_from(left), unique_by=lambda one: one[0]) if left else st.just([])
    ):
        stream.delete(sid(entry[0].decode()))
        left.remove(entry)
    return stream, left


def by_nodes(
    stream: Stream, builder: BatchBuilder, start: StreamID = SMALLEST, end: StreamID = LARGEST
) -> list[pa.RecordBatch]:
    """All batches of a stream's nodes, with other bytes around each node."""
    rows = NodeRows(builder.rows, start, end)
    batches = []
    for key, node in nodes_of(stream):
        rows.open(bytearray(b"\xff" * 7 + node + b"\x00" * 9), 7, len(node), sid(key))
        while not rows.run():
            batches.append(builder.take())
    batches.append(builder.take())
    return batches


def resp_of(entries: list[Entry]) -> bytes:
    parts = [b"*%d\r\n" % len(entries)]
    for entry_id, fields in entries:
        words = [piece for pair in fields for piece in pair]
        parts.append(b"*2\r\n$%d\r\n%b\r\n*%d\r\n" % (len(entry_id), entry_id, len(words)))
        parts.extend(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"".join(parts)


def by_resp(data: bytes, builder: BatchBuilder, piece: int) -> list[pa.RecordBatch]:
    """All batches of a reply that arrives in pieces, into a buffer that has to grow."""
    inbox = Inbox(16)
    reply = RangeReply(inbox, builder.rows)
    batches = []
    at = 0
    while (state := reply.run()) != DONE:
        if state == FULL:
            batches.append(builder.take())
            continue
        assert at < len(data), "it wants more than there is"
        with inbox.free() as view:
            size = min(piece, len(view), len(data) - at)
            view[:size] = data[at : at + size]
        inbox.received(size)
        at += size
    batches.append(builder.take())
    assert (at, inbox.at) == (len(data), inbox.end)
    return batches


def pylist(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    rows = []
    for batch in batches:
        batch.validate(full=True)
        rows += batch.to_pylist()
    for row in rows:
        if row.get("_corrupt") is not None:
            row["_corrupt"] = sorted(row["_corrupt"])
        for name, value in row.items():
            if isinstance(value, datetime) and value.tzinfo is not None:
                row[name] = value.astimezone(
                    UTC
                )  # pyarrow's zone of the same name is another object
    return rows


@pytest.mark.parametrize("schema", [TYPED, MAPPED, ENTRIES], ids=["typed", "mapped", "entries"])
@given(made=streams(), rows_max=st.integers(1, 5), piece=st.integers(1, 3000))
def test_both_decoders_agree_with_a_simple_one(
    schema: pa.Schema, made: tuple[Stream, list[Entry]], rows_max: int, piece: int
) -> None:
    stream, entries = made
    expected = rows_of(entries, schema)
    for batches in (
        by_nodes(stream, BatchBuilder(schema, b"s", RowLimits(rows_max))),
        by_resp(resp_of(entries), BatchBuilder(schema, b"s", RowLimits(rows_max)), piece),
    ):
        assert all(batch.schema.equals(schema, check_metadata=True) for batch in batches)
        assert all(batch.num_rows == rows_max for batch in batches[:-1])
        found = pylist(batches)
        assert same(found, expected), (found, expected)


@given(made=streams(), ends=st.tuples(IDS, IDS))
def test_a_range_begins_and_ends_inside_nodes(
    made: tuple[Stream, list[Entry]], ends: tuple[list[tuple[int, int]], list[tuple[int, int]]]
) -> None:
    stream, entries = made
    start = StreamID(*ends[0][0]) if ends[0] else SMALLEST
    end = StreamID(*ends[1][0]) if ends[1] else LARGEST
    schema = pa.schema({"_id": pa.string()})
    found = pylist(by_nodes(stream, BatchBuilder(schema, b"s"), start, end))
    expected = [one[0].decode() for one in entries if start <= sid(one[0].decode()) <= end]
    assert [row["_id"] for row in found] == expected


@pytest.mark.parametrize("kind", ALL_TYPES.values(), ids=str)
def test_unusual_texts_are_read_as_by_a_simple_decoder(kind: pa.DataType) -> None:
    schema = pa.schema({"v": kind, "_corrupt": TEXTS})
    entries: list[Entry] = [
        (b"%d-1" % (ms + 1), [(b"v", text)]) for ms, text in enumerate([*ODD, *NUMBERS])
    ]
    stream = Stream(NodeLimits(4096, 100))
    for entry_id, fields in entries:
        given_id = sid(entry_id.decode())
        stream.append_at(given_id.ms, given_id.seq, frame_of(*fields[0]), 0)
    expected = rows_of(entries, schema)
    for batches in (
        by_nodes(stream, BatchBuilder(schema, b"s")),
        by_resp(resp_of(entries), BatchBuilder(schema, b"s"), 1 << 20),
    ):
        for row, wanted, entry in zip(pylist(batches), expected, entries, strict=True):
            assert same(row, wanted), entry


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(38, 4)], ids=str)
def test_a_long_run_of_digits_is_scanned_once(kind: pa.DataType) -> None:
    """Scanning it once per digit would take hours."""
    builder = BatchBuilder(pa.schema({"f": kind}), b"s")
    by_resp(resp_of([(b"7-1", [(b"f", b"1" * 1_000_000 + b"x")])]), builder, 1 << 22)
    assert builder.rows.values_failed == 1


def test_a_reply_in_pieces_of_every_size_gives_the_same() -> None:
    entries: list[Entry] = [
        (b"1-1", [(b"a", b"x"), (b"f", b"12")]),
        (b"2-18446744073709551615", [(b"f", b"y" * 1200), (b"a", b"")]),
        (b"3-0", []),
    ]
    data = resp_of(entries)
    expected = rows_of(entries, TYPED)
    for piece in range(1, len(data) + 1):
        assert pylist(by_resp(data, BatchBuilder(TYPED, b"s"), piece)) == expected


def test_any_changed_byte_of_a_node_is_an_error_or_a_result() -> None:
    stream = Stream(NodeLimits(4096, 100))
    for ms in range(1, 5):
        stream.append_at(ms, 0, frame_of(b"a", b"x" * 70, b"f", b"%d" % 10**ms), 0)
    stream.append_at(5, 0, frame_of(b"other", b"\xff", b"f", b"-1"), 0)
    stream.delete(sid("2-0"))
    ((key, node),) = nodes_of(stream)
    outcomes = {"error": 0, "result": 0}
    for at in range(len(node)):
        for flip in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            bad = bytearray(node)
            bad[at] ^= flip
            builder = BatchBuilder(MAPPED, b"s")
            rows = NodeRows(builder.rows)
            try:
                rows.open(bad, 0, len(bad), sid(key))
                assert rows.run()
            except CorruptData:
                outcomes["error"] += 1
            else:
                builder.take().validate(full=True)
                outcomes["result"] += 1
    assert min(outcomes.values()) > 0


@given(data=st.binary(max_size=60), at=st.integers(0, 40))
def test_invalid_nodes_are_refused(data: bytes, at: int) -> None:
    rows = NodeRows(BatchBuilder(MAPPED, b"s").rows)
    size = len(data) + 7
    raw = bytearray(size.to_bytes(4, "little") + b"\x05\x00" + data + b"\xff")
    try:
        rows.open(raw, 0, size, sid("1-0"))
        rows.run()
    except CorruptData:
        pass
    with pytest.raises(CorruptData):
        rows.open(raw, at, size + 1, sid("1-0"))


@given(data=st.binary(max_size=40), at=st.integers(0, 200), flip=st.integers(0, 255))
def test_any_changed_reply_is_an_error_or_a_result(data: bytes, at: int, flip: int) -> None:
    good = bytearray(resp_of([(b"1-1", [(b"a", b"x"), (b"f", b"12")]), (b"2-1", [(b"a", b"y")])]))
    good[at % len(good)] = flip
    for reply in (bytes(good), data, b"*1\r\n" + data):
        inbox = Inbox(512)
        with inbox.free() as view:
            view[: len(reply)] = reply
        inbox.received(len(reply))
        builder = BatchBuilder(TYPED, b"s")
        try:
            RangeReply(inbox, builder.rows).run()
        except (ProtocolError, CommandError):
            continue
        builder.take().validate(full=True)


def test_an_error_of_the_server_is_raised_with_its_code() -> None:
    with pytest.raises(CommandError) as caught:
        by_resp(b"-WRONGTYPE Operation\r\n", BatchBuilder(TYPED, b"s"), 3)
    assert (caught.value.code, str(caught.value)) == ("WRONGTYPE", "WRONGTYPE Operation")


def test_an_announced_size_allocates_nothing() -> None:
    inbox = Inbox(64)
    with inbox.free() as view:
        view[:17] = b"*900000000000\r\n*2"
    inbox.received(17)
    RangeReply(inbox, BatchBuilder(TYPED, b"s").rows).run()
    assert len(inbox.buffer) == 64


def test_a_batch_ends_before_its_texts_are_too_long() -> None:
    entries: list[Entry] = [(b"%d-0" % ms, [(b"a", b"x" * 400)]) for ms in range(1, 11)]
    schema = pa.schema({"a": pa.string()})
    batches = by_resp(resp_of(entries), BatchBuilder(schema, b"s", RowLimits(bytes_max=1000)), 99)
    assert [batch.num_rows for batch in batches] == [2, 2, 2, 2, 2]


def test_with_the_option_a_bad_value_fails_and_is_named() -> None:
    schema = pa.schema({"f": pa.int64()})
    with pytest.raises(UnreadableValue, match=r"stream s, entry 7-1: the field f is 'many'"):
        by_resp(
            resp_of([(b"7-1", [(b"f", b"many")])]),
            BatchBuilder(schema, b"s", RowLimits(fail_on_error=True)),
            100,
        )


def test_a_missing_field_of_a_column_that_is_never_null_is_an_error() -> None:
    schema = pa.schema([pa.field("f", pa.int64(), nullable=False)])
    with pytest.raises(UnreadableValue, match="the column f must not be null"):
        by_resp(resp_of([(b"7-1", [(b"g", b"1")])]), BatchBuilder(schema, b"s"), 100)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_id", pa.int64()),
        ("_corrupt", pa.string()),
        ("v", pa.large_string()),
        ("v", pa.list_(pa.int32())),
        ("fields", pa.map_(pa.string(), pa.int32())),
    ],
)
def test_an_unsupported_type_is_refused_with_its_column(name: str, kind: pa.DataType) -> None:
    with pytest.raises(ConfigError, match=name):
        BatchBuilder(pa.schema({name: kind}), b"s")


def test_values_that_failed_are_counted_without_a_column_for_them() -> None:
    builder = BatchBuilder(pa.schema({"f": pa.int64(), "a": pa.string()}), b"s")
    by_resp(resp_of([(b"7-1", [(b"f", b"x"), (b"a", b"\xff")]), (b"8-1", [])]), builder, 100)
    assert builder.rows.values_failed == 2


def test_a_batch_without_columns_has_rows() -> None:
    batches = by_resp(resp_of([(b"7-1", []), (b"8-1", [])]), BatchBuilder(pa.schema([]), b"s"), 9)
    assert [batch.num_rows for batch in batches] == [2]
