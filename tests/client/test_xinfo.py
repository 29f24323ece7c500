"""Replies of XINFO, of old and of new servers."""

from __future__ import annotations

import pytest

from penstock.client.replies import Entry, Reply, UnexpectedReply
from penstock.client.xinfo import (
    ConsumerInfo,
    GroupInfo,
    consumer_infos,
    group_infos,
    stream_info,
)
from penstock.core.stream_id import StreamID

FIRST: Reply = [b"1-0", [b"k", b"1", b"k", b"2"]]
LAST: Reply = [b"5-1", [b"k", b"3"]]

# XINFO STREAM of Redis 5.0.
OLD_STREAM: list[Reply] = [
    b"length", 2,
    b"radix-tree-keys", 1,
    b"radix-tree-nodes", 3,
    b"groups", 1,
    b"last-generated-id", b"7-0",
    b"first-entry", FIRST,
    b"last-entry", LAST,
]  # fmt: skip
ADDED_IN_REDIS_7: list[Reply] = [
    b"max-deleted-entry-id", b"6-0",
    b"entries-added", 4,
    b"recorded-first-entry-id", b"1-0",
]  # fmt: skip
OLD_GROUP: list[Reply] = [
    b"name", b"g",
    b"consumers", 2,
    b"pending", 3,
    b"last-delivered-id", b"5-0",
]  # fmt: skip
OLD_CONSUMER: list[Reply] = [b"name", b"c", b"pending", 3, b"idle", 250]


def test_a_stream_of_an_old_server() -> None:
    info = stream_info(OLD_STREAM)
    assert (info.length, info.tree_keys, info.tree_nodes) == (2, 1, 3)
    assert info.last_id == StreamID(7, 0)
    assert info.first == Entry(StreamID(1, 0), [(b"k", b"1"), (b"k", b"2")])
    assert info.last == Entry(StreamID(5, 1), [(b"k", b"3")])
    assert (info.entries_added, info.max_deleted_id) == (None, None)


def test_a_stream_of_redis_7() -> None:
    info = stream_info([*OLD_STREAM, *ADDED_IN_REDIS_7])
    assert (info.entries_added, info.max_deleted_id) == (4, StreamID(6, 0))


def test_an_empty_stream_has_no_entries() -> None:
    reply: list[Reply] = [None if item in (FIRST, LAST) else item for item in OLD_STREAM]
    info = stream_info(reply)
    assert (info.first, info.last) == (None, None)


def test_fields_of_newer_servers_are_kept_in_order() -> None:
    info = stream_info([b"idmp-duration", 100, *OLD_STREAM, b"shards", [b"a"]])
    assert info.length == 2
    assert next(iter(info.sent)) == "idmp-duration"
    assert info.sent["shards"] == [b"a"]


def test_groups_of_old_and_new_servers() -> None:
    new = [*OLD_GROUP, b"entries-read", 4, b"lag", None, b"nacked", 0]
    assert group_infos([OLD_GROUP, new]) == [
        GroupInfo(b"g", 2, 3, StreamID(5, 0), None, None),
        GroupInfo(b"g", 2, 3, StreamID(5, 0), 4, None),
    ]


def test_consumers_of_old_and_new_servers() -> None:
    assert consumer_infos([OLD_CONSUMER, [*OLD_CONSUMER, b"inactive", -1, b"new", b"x"]]) == [
        ConsumerInfo(b"c", 3, 250, None),
        ConsumerInfo(b"c", 3, 250, -1),
    ]


@pytest.mark.parametrize("field", ["length", "last-generated-id", "first-entry", "last-entry"])
def test_a_field_that_every_server_sends_must_be_there(field: str) -> None:
    at = OLD_STREAM.index(field.encode())
    with pytest.raises(UnexpectedReply, match=f"^the server's reply has no {field}$"):
        stream_info(OLD_STREAM[:at] + OLD_STREAM[at + 2 :])


@pytest.mark.parametrize("reply", [3, b"x", [[1]], [[b"name", 5]], [[b"name"]]])
def test_a_reply_of_another_shape_is_unexpected(reply: Reply) -> None:
    for read in (stream_info, group_infos, consumer_infos):
        with pytest.raises(UnexpectedReply):
            read(reply)
