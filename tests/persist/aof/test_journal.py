"""The journal writes the usual effects in one pass: the same bytes as word by word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.stream import NodeLimits, Stream
from penstock.persist.aof import record_bytes
from penstock.persist.aof.journal import Journal
from penstock.wire.parser import Parser, WireLimits
from tests.support.engine.effects import Recorder
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import encode

WORDS = st.binary(max_size=300)
NUMBERS = st.one_of(st.integers(0, 99), st.integers(0, 2**64 - 1))
OPTIONS = st.sampled_from(
    [[], [b"MAXLEN", b"~", b"1000"], [b"nomkstream"], [b"MINID", b"=", b"0-1"]]
)


def as_sent(words: list[bytes]) -> Frame:
    """A frame in the buffer of a receiver, with another command before it."""
    data = bytearray(encode([b"PING"]) + encode(words))
    frame = Frame()
    parser = Parser(WireLimits())
    assert parser.next(frame, data, len(data))
    assert parser.next(frame, data, len(data))
    return frame


@given(
    name=st.sampled_from([b"XADD", b"xadd", b"XaDd"]),
    key=WORDS,
    options=OPTIONS,
    fields=st.lists(WORDS, min_size=2, max_size=10).filter(lambda found: len(found) % 2 == 0),
    ms=NUMBERS,
    seq=NUMBERS,
    database=st.integers(0, 15),
)
def test_an_xadd_as_it_was_sent_is_logged_like_any_other(
    name: bytes,
    key: bytes,
    options: list[bytes],
    fields: list[bytes],
    ms: int,
    seq: int,
    database: int,
) -> None:
    words = [name, key, *options, b"*", *fields]
    stream = Stream(NodeLimits())
    stream.set_last_id(stream_id.make(ms, seq), 0, stream_id.SMALLEST)
    logs = [Journal(), Journal()]
    frames = [as_sent(words), frame_of(*words)]
    assert frames[0].is_as_sent
    assert not frames[1].is_as_sent
    for log, frame in zip(logs, frames, strict=True):
        for _ in range(2):
            log.added(database, frame, len(words) - len(fields), stream, None)
    entry_id = b"%d-%d" % (ms, seq)
    effect = encode([b"XADD", key, entry_id, *fields])
    expected = encode([b"SELECT", b"%d" % database]) + effect + effect
    assert [log.take() for log in logs] == [expected, expected]


def test_a_buffer_that_is_full_grows() -> None:
    words = [b"XADD", b"s", b"*", b"f", b"v" * 700]
    stream = Stream(NodeLimits())
    stream.set_last_id(stream_id.make(1, 1), 0, stream_id.SMALLEST)
    log = Journal()
    for _ in range(1000):
        log.added(0, as_sent(words), 3, stream, None)
    effect = encode([b"XADD", b"s", b"1-1", b"f", b"v" * 700])
    assert log.take() == encode([b"SELECT", b"0"]) + effect * 1000


@given(
    key=WORDS,
    group=WORDS,
    consumer=WORDS,
    ids=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20, unique=True).map(sorted),
    count=st.integers(1, 25),
    now_ms=st.integers(0, 2**53),
)
def test_a_delivery_in_one_pass(
    key: bytes,
    group: bytes,
    consumer: bytes,
    ids: list[tuple[int, int]],
    count: int,
    now_ms: int,
) -> None:
    bench = Recorder(start_ms=now_ms)
    ids = [found for found in ids if found != (0, 0)] or [(0, 1)]
    texts = [b"%d-%d" % pair for pair in ids]
    for text in texts:
        bench.run(b"XADD", key, text, b"f", b"v")
    bench.run(b"XGROUP", b"CREATE", key, group, b"0")
    bench.run(b"XGROUP", b"CREATECONSUMER", key, group, consumer)
    bench.take()
    bench.run(
        *(b"XREADGROUP", b"GROUP", group, consumer, b"COUNT", b"%d" % count, b"STREAMS", key, b">")
    )
    got = texts[:count]
    claim = [b"XCLAIM", key, group, consumer, b"0", *got, b"TIME", b"%d" % now_ms]
    claim += [b"RETRYCOUNT", b"1", b"FORCE", b"JUSTID", b"LASTID", got[-1]]
    moved = [b"XGROUP", b"SETID", key, group, got[-1], b"ENTRIESREAD", b"%d" % len(got)]
    unit = [[b"MULTI"], claim, moved, [b"EXEC"]]
    assert bench.take() == b"".join(encode(words) for words in unit)


@given(first=NUMBERS, second=NUMBERS, number=st.integers(-(2**63), 2**63 - 1))
def test_numbers_and_ids(first: int, second: int, number: int) -> None:
    """The functions for plain Python; compiled, the tests above run those of record_bytes.pxd."""
    target = bytearray(2 * record_bytes.WORD_BYTES_MAX)
    at = record_bytes.put_id(target, 0, first, second)
    end = record_bytes.put_number(target, at, number)
    words = [b"%d-%d" % (first, second), b"%d" % number]
    assert bytes(target[:end]) == encode(words)[4:]
