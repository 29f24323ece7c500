"""The parser: the same commands however the bytes are split, and Redis's errors."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.frame import Frame
from penstock.errors import ProtocolError
from penstock.wire.parser import (
    BULK_BYTES_MAX,
    INLINE_BYTES_MAX,
    STRANGER_ARGUMENTS_MAX,
    STRANGER_BULK_BYTES_MAX,
    Parser,
    WireLimits,
    split_words,
)

Words = list[bytes]


def encoded(words: Words) -> bytes:
    lines = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"*%d\r\n%b" % (len(words), lines)


def pieces(frame: Frame) -> Words:
    return [frame.piece(index) for index in range(frame.count)]


def commands_of(chunks: list[bytes]) -> list[Words]:
    """The commands that a parser finds in bytes that arrive in chunks, in one growing buffer."""
    parser, frame, buffer = Parser(WireLimits()), Frame(), bytearray()
    found = []
    for chunk in chunks:
        buffer += chunk
        while parser.next(frame, buffer, len(buffer)):
            found.append(pieces(frame))
    return found


def refusal(data: bytes, stranger: bool = False) -> str:
    parser = Parser(WireLimits())
    parser.stranger = stranger
    buffer = bytearray(data)
    with pytest.raises(ProtocolError) as caught:
        parser.next(Frame(), buffer, len(buffer))
    return str(caught.value)


COMMANDS = [
    [b"PING"],
    [b"XADD", b"s", b"*", b"name", b"x" * 9, b"long", b"y" * 1234],
    [b"", b"\r\n", b"\0\xff$3\r\n"],
    [b"k"] * 200,
]


def test_a_command_is_its_pieces_where_they_came_in() -> None:
    parser, frame, buffer = Parser(WireLimits()), Frame(), bytearray(encoded([b"GET", b"key"]))
    assert parser.next(frame, buffer, len(buffer))
    assert frame.buffer is buffer
    assert pieces(frame) == [b"GET", b"key"]
    assert parser.start == parser.at == len(buffer)


@pytest.mark.parametrize("words", COMMANDS, ids=["one", "mixed", "odd bytes", "many"])
def test_a_command_cut_at_every_byte_is_the_same_command(words: Words) -> None:
    data = encoded(words) + encoded([b"PING"])
    for cut in range(len(data) + 1):
        assert commands_of([data[:cut], data[cut:]]) == [words, [b"PING"]]


def test_a_command_that_comes_byte_by_byte_is_the_same_command() -> None:
    data = b"".join(encoded(words) for words in COMMANDS[:3]) + b"SET k 'a b'\r\n"
    found = commands_of([data[i : i + 1] for i in range(len(data))])
    assert found == [*COMMANDS[:3], [b"SET", b"k", b"a b"]]


def test_a_parser_continues_in_another_buffer_with_the_spans_noted() -> None:
    data = b"PING\r\n" + encoded([b"GET", b"key"])
    parser, frame = Parser(WireLimits()), Frame()
    first = bytearray(data[:-4])
    assert parser.next(frame, first, len(first))
    assert not parser.next(frame, first, len(first))
    start = parser.start
    assert start == len(b"PING\r\n")
    second = bytearray(data[start:])
    frame.move_to(second, start)
    parser.rest_moved(start)
    assert parser.next(frame, second, len(second))
    assert pieces(frame) == [b"GET", b"key"]


@pytest.mark.parametrize("nothing", [b"*0\r\n", b"*-1\r\n", b"\r\n", b"\n", b"  \r\n"])
def test_empty_commands_are_passed_over(nothing: bytes) -> None:
    assert commands_of([nothing + b"PING\r\n" + nothing + encoded([b"A"])]) == [[b"PING"], [b"A"]]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*a\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*01\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*99999999999999999999999\r\n", "invalid multibulk length"),
        (b"*1\r\n:5\r\n", "expected '$', got ':'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$%d\r\n" % (BULK_BYTES_MAX + 1), "invalid bulk length"),
        (b"*1\r\n$18446744073709551617\r\n", "invalid bulk length"),
        (b"*" + b"1" * (INLINE_BYTES_MAX + 1), "too big mbulk count string"),
        (b"*1\r\n$" + b"1" * (INLINE_BYTES_MAX + 1), "too big bulk count string"),
        (b"A" * (INLINE_BYTES_MAX + 1), "too big inline request"),
        (b"SET 'k v\r\n", "unbalanced quotes in request"),
        (b'SET "k"v\r\n', "unbalanced quotes in request"),
    ],
)
def test_bytes_that_are_no_command_are_refused_with_the_text_of_redis(
    data: bytes, text: str
) -> None:
    assert refusal(data) == f"Protocol error: {text}"


def test_an_unauthenticated_client_has_small_limits() -> None:
    many = b"*%d\r\n" % (STRANGER_ARGUMENTS_MAX + 1)
    large = b"*1\r\n$%d\r\n" % (STRANGER_BULK_BYTES_MAX + 1)
    assert refusal(many, stranger=True) == "Protocol error: unauthenticated multibulk length"
    assert refusal(large, stranger=True) == "Protocol error: unauthenticated bulk length"
    parser, frame = Parser(WireLimits()), Frame()
    parser.stranger = True
    buffer = bytearray(encoded([b"AUTH", b"secret"]))
    assert parser.next(frame, buffer, len(buffer))


def test_promises_allocate_nothing() -> None:
    parser, frame = Parser(WireLimits()), Frame()
    buffer = bytearray(b"*1000000000\r\n$%d\r\n" % BULK_BYTES_MAX)
    spans = len(frame.spans)
    assert not parser.next(frame, buffer, len(buffer))
    assert len(frame.spans) == spans
    assert parser.left == 1_000_000_000


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", []),
        (b"  a\tb ", [b"a", b"b"]),
        (b'"a b" c', [b"a b", b"c"]),
        (rb'"\x41\n\r\t\b\a\\\"\q"', [b'A\n\r\t\b\a\\"q']),
        (rb"'it\'s' '\n'", [b"it's", rb"\n"]),
        (b'""', [b""]),
        (b'"\\xzz"', [b"xzz"]),
    ],
)
def test_a_line_is_split_as_redis_does(line: bytes, words: Words) -> None:
    assert split_words(line) == words


@given(st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=6), max_size=5), st.data())
def test_commands_come_out_as_they_went_in_however_they_are_cut(
    commands: list[Words], data: st.DataObject
) -> None:
    whole = b"".join(encoded(words) for words in commands)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    edges = [0, *cuts, len(whole)]
    chunks = [whole[a:b] for a, b in pairwise(edges)]
    assert commands_of(chunks) == commands


@given(st.binary(max_size=200))
def test_any_bytes_are_commands_or_refused(data: bytes) -> None:
    parser, frame, buffer = Parser(WireLimits()), Frame(), bytearray(data)
    try:
        while parser.next(frame, buffer, len(buffer)):
            assert all(isinstance(piece, bytes) for piece in pieces(frame))
            assert parser.start <= parser.at <= len(buffer)
    except ProtocolError:
        pass


def outcome(data: bytes, step: int) -> tuple[list[Words], str]:
    """The commands in bytes that arrive `step` at a time, and the error after them."""
    parser, frame, buffer = Parser(WireLimits()), Frame(), bytearray(data)
    found: list[Words] = []
    for end in range(step, len(data) + step, step):
        try:
            while parser.next(frame, buffer, min(end, len(data))):
                found.append(pieces(frame))
        except ProtocolError as error:
            return found, str(error)
    return found, ""


ODD_PARTS = [
    *(b"*1\r\n", b"*01\r\n", b"*1\n\n", b"*17\r\n", b"*0\r\n", b"*-1\r\n", b"PING", b"PING\r\n", b"\r\n"),
    *(b"$4\r\n", b"$4 \r\n", b"$0\r\n\r\n", b"$04\r\nPING\r\n", b"$4\r\nPINGxx", b"$4\rxPING\r\n"),
    *(b"*1\r$4\r\nPING\r\n", b"*1\rx$4\r\nPING\r\n", b"$1000\r\n" + b"x" * 1000 + b"\r\n"),
]  # fmt: skip
NEARLY_COMMANDS = st.lists(
    st.one_of(
        st.lists(st.binary(max_size=12), min_size=1, max_size=4).map(encoded),
        st.sampled_from(ODD_PARTS),
    ),
    max_size=6,
)


@given(NEARLY_COMMANDS)
def test_whole_commands_are_read_as_bytes_that_come_one_by_one(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert outcome(data, len(data) or 1) == outcome(data, 1)
