"""The encoder: every kind of reply, in both protocols."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.stream import NodeLimits, Stream
from penstock.errors import CommandError, ProtocolError
from penstock.reply import (
    NULL_ARRAY,
    OK,
    Double,
    Members,
    Pairs,
    Push,
    Served,
    Verbatim,
)
from penstock.wire.encoder import KEEP_BYTES_MAX, Encoder
from tests.support.engine.streams import add, frame_of, sid, stream_of


def encoded(reply: Any, resp3: bool = False) -> bytes:
    output = Encoder()
    output.resp3 = resp3
    output.put(reply)
    return output.take()


@pytest.mark.parametrize(
    ("reply", "resp2", "resp3"),
    [
        (None, b"$-1\r\n", b"_\r\n"),
        (NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
        (0, b":0\r\n", b":0\r\n"),
        (-(2**63), b":-9223372036854775808\r\n", b":-9223372036854775808\r\n"),
        (2**63 - 1, b":9223372036854775807\r\n", b":9223372036854775807\r\n"),
        (b"", b"$0\r\n\r\n", b"$0\r\n\r\n"),
        (b"a\r\nb", b"$4\r\na\r\nb\r\n", b"$4\r\na\r\nb\r\n"),
        (b"x" * 100, b"$100\r\n" + b"x" * 100 + b"\r\n", b"$100\r\n" + b"x" * 100 + b"\r\n"),
        (OK, b"+OK\r\n", b"+OK\r\n"),
        ([], b"*0\r\n", b"*0\r\n"),
        ([1, [b"a", None]], b"*2\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n", None),
        (Pairs([(b"k", 1)]), b"*2\r\n$1\r\nk\r\n:1\r\n", b"%1\r\n$1\r\nk\r\n:1\r\n"),
        (
            Served([(b"s", [])]),
            b"*1\r\n*2\r\n$1\r\ns\r\n*0\r\n",
            b"%1\r\n$1\r\ns\r\n*0\r\n",
        ),
        (Push([b"message"]), b"*1\r\n$7\r\nmessage\r\n", b">1\r\n$7\r\nmessage\r\n"),
        (Members([1, 2]), b"*2\r\n:1\r\n:2\r\n", b"~2\r\n:1\r\n:2\r\n"),
        (Verbatim(b"text"), b"$4\r\ntext\r\n", b"=8\r\ntxt:text\r\n"),
        (Double(0.5), b"$3\r\n0.5\r\n", b",0.5\r\n"),
        (Double(3.0), b"$1\r\n3\r\n", b",3\r\n"),
        (Double(float("-inf")), b"$4\r\n-inf\r\n", b",-inf\r\n"),
        (CommandError("no"), b"-ERR no\r\n", b"-ERR no\r\n"),
        (CommandError("no", "NOGROUP"), b"-NOGROUP no\r\n", b"-NOGROUP no\r\n"),
    ],
)
def test_a_reply_in_both_protocols(reply: Any, resp2: bytes, resp3: bytes | None) -> None:
    assert encoded(reply) == resp2
    if resp3 is not None:
        assert encoded(reply, resp3=True) == resp3


def test_an_error_stays_on_one_line_and_keeps_odd_bytes() -> None:
    quoted = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert encoded(CommandError(f"a\r\nb {quoted}")) == b"-ERR a  b \xff\xfe\r\n"
    assert encoded(ProtocolError("bad")) == b"-ERR Protocol error: bad\r\n"


def test_an_object_that_is_no_reply_raises() -> None:
    with pytest.raises(TypeError, match="a reply cannot be a set"):
        encoded({1})


def test_taking_forgets_and_gives_a_large_buffer_back() -> None:
    output = Encoder()
    output.put(b"x" * (2 * KEEP_BYTES_MAX))
    assert len(output.take()) > 2 * KEEP_BYTES_MAX
    assert len(output.buffer) < KEEP_BYTES_MAX
    assert output.take() == b""


def test_cutting_back_removes_the_last_bytes() -> None:
    output = Encoder()
    output.put(1)
    mark = output.size
    output.put(2)
    output.cut_back(mark)
    assert output.take() == b":1\r\n"


def plainly(stream: Stream, limit: int = 0) -> bytes:
    return encoded([list(entry) for entry in stream.range(limit=limit).entries()])


def test_a_range_is_written_as_its_entries_would_be() -> None:
    stream = Stream(NodeLimits(4096, 3))
    add(stream, "1-1", b"name", b"value", b"n", b"12", b"big", b"-9223372036854775808")
    add(stream, "1-2", b"name", b"x" * 63, b"n", b"0", b"big", b"9223372036854775807")
    add(stream, "1-3", b"other", b"y" * 64)
    add(stream, "18446744073709551615-18446744073709551614", b"", b"z" * 5000)
    add(stream, "18446744073709551615-18446744073709551615", b"\0\xff", b"-1")
    assert encoded(stream.range()) == plainly(stream)
    assert encoded(stream.range(limit=2)) == plainly(stream, 2)
    stream.delete(sid("1-2"))
    assert encoded(stream.range()) == plainly(stream)


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 99, 100, 101])
def test_the_head_of_a_range_fits_however_many_entries_there_are(count: int) -> None:
    stream = stream_of(*(f"{n}-0" for n in range(1, count + 1)))
    assert encoded(stream.range()) == plainly(stream)
    # Fewer entries than the stream's length suggests: the body moves forward.
    first = stream.range(end=sid("5-0"))
    assert encoded(first) == encoded([list(entry) for entry in first.entries()])


@given(st.lists(st.lists(st.binary(max_size=90), min_size=1, max_size=4), max_size=12))
def test_ranges_of_any_entries_are_written_like_lists(entries: list[list[bytes]]) -> None:
    stream = Stream(NodeLimits(256, 4))
    for number, names in enumerate(entries):
        pieces = [piece for name in names for piece in (name, name[::-1])]
        stream.append_at(number // 3 + 1, number, frame_of(*pieces), 0)
    assert encoded(stream.range()) == plainly(stream)


@pytest.mark.parametrize("ms", [2**64 - 1, 10**18, 10**18 - 1, 5])
def test_an_id_fits_wherever_the_buffer_ends(ms: int) -> None:
    """An XADD with such an id ended the server if 67 or 68 bytes of the buffer were left."""
    for size in range(1900, 2060):
        output = Encoder()
        output.put_bulk(b"x" * size)
        output.put_id(b"%d-" % ms, 2**64 - 1)
        text = b"%d-%d" % (ms, 2**64 - 1)
        assert output.take().endswith(b"x\r\n$%d\r\n%b\r\n" % (len(text), text))
