"""XINFO on an engine."""

from __future__ import annotations

import pytest

from tests.support.engine.engines import (
    NO_SUCH_KEY,
    NOT_A_NUMBER,
    START_MS,
    WRONG_TYPE,
    Bench,
    assert_refused,
    grouped,
)

KV = [b"k", b"v"]
UNKNOWN = "ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."


def described(version: str) -> Bench:
    """Twelve entries, the second deleted; group g, whose consumer a has read three of them."""
    bench = grouped(*(f"{n}-0" for n in range(1, 13)), version=version)
    bench.ask("XREADGROUP GROUP g a COUNT 3 STREAMS s >")
    bench.ask("XGROUP CREATECONSUMER s g idler")
    bench.ask("XDEL s 2-0")
    bench.clock.at_ms += 250
    return bench


def pairs(flat: list[object]) -> dict[object, object]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def test_a_stream_is_described_in_redis_s_order() -> None:
    assert described("7.0").ask("XINFO STREAM s") == [
        *(b"length", 11, b"radix-tree-keys", 1, b"radix-tree-nodes", 2),
        *(b"last-generated-id", b"12-0", b"max-deleted-entry-id", b"2-0", b"entries-added", 12),
        *(b"recorded-first-entry-id", b"1-0", b"groups", 1),
        *(b"first-entry", [b"1-0", KV], b"last-entry", [b"12-0", KV]),
    ]


def test_an_empty_stream_has_no_first_and_no_last_entry() -> None:
    bench = Bench()
    bench.ask("XADD s MAXLEN 0 5-0 k v")
    found = pairs(bench.ask("XINFO STREAM s"))
    assert (found[b"first-entry"], found[b"last-entry"]) == (None, None)
    assert (found[b"recorded-first-entry-id"], found[b"last-generated-id"]) == (b"0-0", b"5-0")
    assert (found[b"max-deleted-entry-id"], found[b"entries-added"]) == (b"0-0", 1)


def test_a_full_description_has_entries_groups_and_consumers() -> None:
    found = described("7.0").ask("XINFO STREAM s FULL COUNT 2")
    assert found[:14] == [
        *(b"length", 11, b"radix-tree-keys", 1, b"radix-tree-nodes", 2),
        *(b"last-generated-id", b"12-0", b"max-deleted-entry-id", b"2-0", b"entries-added", 12),
        *(b"recorded-first-entry-id", b"1-0"),
    ]
    assert found[14:] == [
        b"entries",
        [[b"1-0", KV], [b"3-0", KV]],
        b"groups",
        [
            [
                *(b"name", b"g", b"last-delivered-id", b"3-0", b"entries-read", 3, b"lag", 9),
                *(b"pel-count", 3, b"pending"),
                [[b"1-0", b"a", START_MS, 1], [b"2-0", b"a", START_MS, 1]],
                b"consumers",
                [
                    [
                        *(b"name", b"a", b"seen-time", START_MS, b"pel-count", 3, b"pending"),
                        [[b"1-0", START_MS, 1], [b"2-0", START_MS, 1]],
                    ],
                    [b"name", b"idler", b"seen-time", START_MS, b"pel-count", 0, b"pending", []],
                ],
            ]
        ],
    ]


@pytest.mark.parametrize(
    ("words", "entries"),
    [("FULL", 10), ("full count 0", 11), ("FULL COUNT -3", 10), ("FULL COUNT 1", 1)],
)
def test_a_full_description_is_limited_to_ten_entries_by_default(words: str, entries: int) -> None:
    found = pairs(described("7.0").ask(f"XINFO STREAM s {words}"))[b"entries"]
    assert isinstance(found, list)
    assert len(found) == entries


def test_groups_come_by_name_with_what_they_have_read() -> None:
    bench = described("7.0")
    bench.ask("XGROUP CREATE s a 5-0")
    assert bench.ask("XINFO GROUPS s") == [
        [
            *(b"name", b"a", b"consumers", 0, b"pending", 0),
            *(b"last-delivered-id", b"5-0", b"entries-read", None, b"lag", None),
        ],
        [
            *(b"name", b"g", b"consumers", 2, b"pending", 3),
            *(b"last-delivered-id", b"3-0", b"entries-read", 3, b"lag", 9),
        ],
    ]


def test_a_stream_without_groups_has_an_empty_list_of_them() -> None:
    bench = Bench()
    bench.ask("XADD s 1-0 k v")
    assert bench.ask("XINFO GROUPS s") == []


def test_consumers_come_by_name_with_how_long_they_were_quiet() -> None:
    assert described("7.0").ask("XINFO CONSUMERS s g") == [
        [b"name", b"a", b"pending", 3, b"idle", 250],
        [b"name", b"idler", b"pending", 0, b"idle", 250],
    ]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XINFO STREAM missing", NO_SUCH_KEY),
        ("XINFO STREAM missing FULL oops", NO_SUCH_KEY),
        ("XINFO STREAM string", WRONG_TYPE),
        ("XINFO STREAM s oops", UNKNOWN),
        ("XINFO STREAM s FULL COUNT", UNKNOWN),
        ("XINFO STREAM s FULL LIMIT 5", UNKNOWN),
        ("XINFO STREAM s FULL COUNT 5 extra", UNKNOWN),
        ("XINFO STREAM s FULL COUNT many", NOT_A_NUMBER),
        ("XINFO STREAM", "ERR wrong number of arguments for 'xinfo|stream' command"),
        ("XINFO GROUPS missing", NO_SUCH_KEY),
        ("XINFO GROUPS string", WRONG_TYPE),
        ("XINFO GROUPS s s", "ERR wrong number of arguments for 'xinfo|groups' command"),
        ("XINFO CONSUMERS missing g", NO_SUCH_KEY),
        ("XINFO CONSUMERS s none", "NOGROUP No such consumer group 'none' for key name 's'"),
        ("XINFO CONSUMERS s", "ERR wrong number of arguments for 'xinfo|consumers' command"),
    ],
)
def test_an_invalid_query_is_refused(line: str, text: str) -> None:
    assert_refused(described("7.0"), line, text)
