"""The checks of streams and their producers find every kind of damage, and name the invariant."""

from __future__ import annotations

from penstock.core.check import check_stream
from penstock.core.idempotency import Idempotency, IdempotencySettings
from penstock.core.stream import NodeLimits, Stream
from penstock.core.stream_id import LARGEST, SMALLEST, StreamID
from tests.support.engine.streams import node_at, nodes_of, sid, stream_of
from tests.support.structures.damage import ENTRY, HEADER, SECOND, broken, counted

# --- Streams -----------------------------------------------------------------------------------------


def loaded(*nodes: tuple[str, bytearray], last: str = "99-0", added: int = 99) -> Stream:
    stream = Stream()
    for key, node in nodes:
        stream.load_node(sid(key), node)
    stream.set_last_id(sid(last), added, SMALLEST)
    return stream


def one_entry() -> bytearray:
    return counted(HEADER, ENTRY)


def test_valid_streams_pass() -> None:
    check_stream(Stream())
    check_stream(loaded(("5-0", one_entry()), ("6-0", one_entry())))
    check_stream(stream_of(*(f"{n}-0" for n in range(1, 20))), NodeLimits(4096, 3))


def test_a_broken_node_of_a_stream_is_found() -> None:
    stream = stream_of("1-0", "2-0", "3-0", "4-0")
    node_at(stream, "1-0")[6] = 7
    with broken("N1", "node 1-0: the header counts 7 live"):
        check_stream(stream)


def test_something_else_than_a_node_is_found() -> None:
    stream = stream_of("1-0")
    stream.nodes.insert(sid("2-0").key, b"bytes are no bytearray")
    with broken("S1", "is not a node"):
        check_stream(stream)


def test_a_key_that_is_not_the_first_id_is_found() -> None:
    stream = loaded(("5-0", counted(HEADER, SECOND)))
    with broken("N2", "not the key"):
        check_stream(stream)


def test_a_wrong_length_is_found() -> None:
    stream = stream_of("1-0", "2-0")
    node = node_at(stream, "1-0")
    assert bytes(node[6:10]) == bytes.fromhex("0201 0001")
    node[6:10] = bytes.fromhex("0101 0101")
    at = bytes(node).index(bytes.fromhex("0201 0001 0001"), 10)
    node[at] = 3  # a valid node of one entry and one tombstone; the stream's length is now wrong
    with broken("S2", "length is 2, the nodes hold 1"):
        check_stream(stream)


def test_nodes_that_overlap_are_found() -> None:
    (_, wide), *_ = nodes_of(stream_of("1-0", "9-0"))
    stream = loaded(("1-0", bytearray(wide)), ("5-0", one_entry()))
    with broken("S3", "node 5-0: it is not above 9-0"):
        check_stream(stream)


def test_a_last_id_below_an_entry_is_found() -> None:
    with broken("S3", "last id is 4-0, below the entry 5-0"):
        check_stream(loaded(("5-0", one_entry()), last="4-0"))


def test_too_few_entries_added_are_found() -> None:
    with broken("S4", "0 added, but 1 there"):
        check_stream(loaded(("5-0", one_entry()), added=0))


def test_an_impossible_count_of_entries_added_is_found() -> None:
    stream = stream_of("5-0")
    stream.set_last_id(sid("5-0"), -(2**63), sid("0-0"))
    with broken("S4", "-9223372036854775808 added"):
        check_stream(stream)


def test_a_deleted_id_above_the_last_is_found() -> None:
    stream = stream_of("5-0")
    stream.set_last_id(sid("5-0"), 1, sid("6-0"))
    with broken("S4", "6-0 deleted, above 5-0"):
        check_stream(stream)


def test_a_tail_that_is_not_the_last_node_is_found() -> None:
    with broken("S5", "the tail is not the last node, 7-0"):
        check_stream(loaded(("7-0", one_entry()), ("5-0", one_entry())))


def test_a_node_that_was_replaced_behind_the_stream_is_found() -> None:
    stream = stream_of("5-0")
    stream.nodes.insert(sid("5-0").key, one_entry())
    with broken("S5", "the tail is not the last node, 5-0"):
        check_stream(stream)


def test_a_tail_without_nodes_is_found() -> None:
    stream = stream_of("5-0")
    stream.nodes.remove(sid("5-0").key)
    with broken("S2", "length is 1"):
        check_stream(stream)
    stream = loaded(("5-0", counted("0001 0001 0001 0001")))
    stream.nodes.remove(sid("5-0").key)
    with broken("S5", "the tail is 5-0, but there is no node"):
        check_stream(stream)


def test_room_behind_a_node_that_is_not_the_tail_is_found() -> None:
    stream = loaded(("5-0", one_entry() + bytes(10)), ("6-0", one_entry()))
    with broken("S5", "room, and it is not the tail"):
        check_stream(stream)


def test_ids_in_messages_are_those_of_the_entries() -> None:
    stream = Stream()
    stream.load_node(StreamID(2**64 - 1, 5), counted(HEADER, SECOND))
    stream.set_last_id(LARGEST, 1, SMALLEST)
    with broken("N2", "the first entry is 0-5"):
        check_stream(stream)


# --- Producers -----------------------------------------------------------------------------------------


def with_producers() -> tuple[Stream, Idempotency]:
    """A stream with two names of one producer, which is all that it may have."""
    stream = stream_of("1-0", "2-0")
    stream.idempotency_settings = IdempotencySettings(100, 2)
    stream.idempotency = known = Idempotency()
    for name in (b"a", b"b"):
        known.record(b"p", name, sid("1-0"), stream.idempotency_settings, 0)
    check_stream(stream)
    return stream, known


def test_a_producer_with_too_many_names_is_found() -> None:
    stream, known = with_producers()
    known.producers[b"p"][b"c"] = sid("2-0")
    with broken("D1", "producer b'p': 3 names, of 2 allowed"):
        check_stream(stream)


def test_a_producer_without_names_is_found() -> None:
    stream, known = with_producers()
    known.producers[b"p"].clear()
    with broken("D1", "producer b'p': 0 names"):
        check_stream(stream)


def test_counters_of_producers_below_zero_are_found() -> None:
    stream, known = with_producers()
    known.duplicates = 2**63 - 1
    check_stream(stream)
    known.duplicates = -1
    with broken("D3", "a counter of -1"):
        check_stream(stream)
    known.duplicates = 0
    known.added = -(2**63)
    with broken("D3", "a counter of -9223372036854775808"):
        check_stream(stream)
