"""XDELEX, XACKDEL, and trims that regard the groups, on an engine."""

from __future__ import annotations

import pytest

from penstock.core.stream_id import LARGEST
from tests.support.engine.engines import (
    INVALID_ID,
    SYNTAX,
    WRONG_TYPE,
    Bench,
    assert_refused,
    grouped,
)
from tests.support.engine.streams import ids_of
from tests.support.servers.raw_redis import Refusal

NOT_POSITIVE = "ERR Number of IDs must be a positive integer"
NO_MATCH = "ERR The `numids` parameter must match the number of arguments"
NO_IDS = "ERR IDS option is required"


@pytest.fixture
def bench() -> Bench:
    """Entries 1-0 to 6-0. g has read all, 1-0 2-0 3-0 are pending; h has read 4-0, 1-0 4-0 are pending."""
    bench = grouped(*(f"{n}-0" for n in range(1, 7)))
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    bench.ask("XACK s g 4-0 5-0 6-0")
    bench.ask("XGROUP CREATE s h 0")
    bench.ask("XREADGROUP GROUP h b COUNT 4 STREAMS s >")
    bench.ask("XACK s h 2-0 3-0")
    return bench


def left(bench: Bench) -> list[str]:
    return ids_of(bench.stream())


def pending(bench: Bench, group: str = "g") -> list[str]:
    return [row[0].decode() for row in bench.ask(f"XPENDING s {group} - + 100")]


# --- XDELEX ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["", "KEEPREF "])
def test_entries_are_deleted_and_stay_pending(bench: Bench, option: str) -> None:
    assert bench.ask(f"XDELEX s {option}IDS 3 1-0 9-0 6-0") == [1, -1, 1]
    assert left(bench) == ["2-0", "3-0", "4-0", "5-0"]
    assert pending(bench) == ["1-0", "2-0", "3-0"]


def test_delref_removes_the_records_of_all_groups(bench: Bench) -> None:
    assert bench.ask("XDELEX s DELREF IDS 3 1-0 4-0 9-0") == [1, 1, -1]
    assert (pending(bench), pending(bench, "h")) == (["2-0", "3-0"], [])
    bench.state()


def test_acked_keeps_what_is_pending_or_not_read_by_a_group(bench: Bench) -> None:
    bench.ask("XACK s g 3-0")
    # 1-0 is pending in both, 2-0 in g, 4-0 in h; h has not read 5-0.
    assert bench.ask("XDELEX s ACKED IDS 6 1-0 2-0 3-0 4-0 5-0 9-0") == [2, 2, 1, 2, 2, 2]
    assert left(bench) == ["1-0", "2-0", "4-0", "5-0", "6-0"]


def test_acked_without_groups_deletes() -> None:
    bench = Bench()
    bench.ask("XADD s 1-0 k v")
    assert bench.ask("XDELEX s ACKED IDS 2 1-0 2-0") == [1, -1]


def test_an_id_named_twice_is_deleted_once(bench: Bench) -> None:
    assert bench.ask("XDELEX s IDS 2 1-0 1-0") == [1, -1]


def test_the_option_may_follow_the_ids_and_case_does_not_matter(bench: Bench) -> None:
    assert bench.ask("XDELEX s ids 1 1-0 DelRef") == [1]
    assert pending(bench) == ["2-0", "3-0"]


def test_without_a_key_nothing_is_found_and_ids_are_not_parsed(bench: Bench) -> None:
    assert bench.ask("XDELEX missing IDS 2 oops 1-0") == [-1, -1]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XDELEX s IDS 1", "ERR wrong number of arguments for 'xdelex' command"),
        ("XDELEX s ACKED 1-0 2-0", SYNTAX),
        ("XDELEX s ACKED ACKED IDS 1 1-0", SYNTAX),
        ("XDELEX s KEEPREF DELREF IDS 1 1-0", SYNTAX),
        ("XDELEX s IDS 1 1-0 2-0", SYNTAX),
        ("XDELEX s KEEPREF ACKED IDS", SYNTAX),
        ("XDELEX s IDS 0 1-0", NOT_POSITIVE),
        ("XDELEX s IDS -1 1-0", NOT_POSITIVE),
        ("XDELEX s IDS many 1-0", NOT_POSITIVE),
        ("XDELEX s IDS 9223372036854775808 1-0", NOT_POSITIVE),
        ("XDELEX s IDS 2 1-0", NO_MATCH),
        ("XDELEX s IDS 9223372036854775807 1-0", NO_MATCH),
        ("XDELEX s IDS 2 1-0 oops", INVALID_ID),
        ("XDELEX string IDS 0 1-0", WRONG_TYPE),
        ("XDELEX missing IDS 0 1-0", NOT_POSITIVE),
    ],
)
def test_an_invalid_deletion_changes_nothing(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


# --- XACKDEL --------------------------------------------------------------------------------------


def test_entries_are_acknowledged_in_one_group_and_deleted(bench: Bench) -> None:
    assert bench.ask("XACKDEL s g IDS 4 1-0 4-0 9-0 2-0") == [1, -1, -1, 1]
    assert (left(bench), pending(bench)) == (["3-0", "4-0", "5-0", "6-0"], ["3-0"])
    assert pending(bench, "h") == ["1-0", "4-0"]


def test_xackdel_delref_removes_the_records_of_the_other_groups(bench: Bench) -> None:
    assert bench.ask("XACKDEL s g DELREF IDS 1 1-0") == [1]
    assert (pending(bench), pending(bench, "h")) == (["2-0", "3-0"], ["4-0"])


def test_xackdel_acked_acknowledges_even_what_another_group_needs(bench: Bench) -> None:
    assert bench.ask("XACKDEL s g ACKED IDS 2 1-0 2-0") == [2, 1]
    assert (left(bench)[0], pending(bench)) == ("1-0", ["3-0"])
    assert bench.ask("XACKDEL s h ACKED IDS 1 1-0") == [1]


def test_an_entry_that_is_gone_is_acknowledged(bench: Bench) -> None:
    bench.ask("XDEL s 1-0")
    assert bench.ask("XACKDEL s g IDS 2 1-0 1-0") == [1, -1]
    assert pending(bench) == ["2-0", "3-0"]


def test_without_a_group_nothing_is_found(bench: Bench) -> None:
    assert bench.ask("XACKDEL s none IDS 2 oops 1-0") == [-1, -1]
    assert bench.ask("XACKDEL missing g IDS 1 1-0") == [-1]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("XACKDEL s g IDS 1", "ERR wrong number of arguments for 'xackdel' command"),
        ("XACKDEL s g 1-0 2-0 3-0", SYNTAX),
        ("XACKDEL s g IDS 2 1-0 oops", INVALID_ID),
        ("XACKDEL s g IDS 3 1-0 2-0", NO_MATCH),
        ("XACKDEL s none IDS 0 1-0", NOT_POSITIVE),
        ("XACKDEL string g IDS 0 1-0", WRONG_TYPE),
    ],
)
def test_an_invalid_acknowledgement_changes_nothing(bench: Bench, line: str, text: str) -> None:
    assert_refused(bench, line, text)


# --- XTRIM and XADD -------------------------------------------------------------------------------


def test_an_acked_trim_leaves_what_groups_need(bench: Bench) -> None:
    bench.ask("XACK s g 3-0")
    assert bench.ask("XTRIM s MAXLEN 0 ACKED") == 1
    assert left(bench) == ["1-0", "2-0", "4-0", "5-0", "6-0"]
    bench.ask("XACK s g 1-0 2-0")
    bench.ask("XACK s h 1-0 4-0")
    assert bench.ask("XTRIM s MINID 9 ACKED") == 3
    assert left(bench) == ["5-0", "6-0"]


def test_an_add_with_acked_keeps_what_groups_need(bench: Bench) -> None:
    assert bench.ask("XADD s ACKED MAXLEN 1 9-0 k v") == b"9-0"
    assert len(left(bench)) == 7


def test_a_delref_trim_removes_the_records_of_what_it_trims(bench: Bench) -> None:
    assert bench.ask("XTRIM s MAXLEN 3 DELREF") == 3
    assert (pending(bench), pending(bench, "h")) == ([], ["4-0"])
    assert bench.ask("XADD s MAXLEN 1 DELREF 9-0 k v") == b"9-0"
    assert pending(bench, "h") == []


@pytest.mark.parametrize("by", ["MAXLEN 0", f"MINID {LARGEST}"])
def test_a_delref_trim_of_everything_reaches_the_largest_id(bench: Bench, by: str) -> None:
    bench.ask(f"XADD s {LARGEST} k v")
    bench.ask("XREADGROUP GROUP g a STREAMS s >")
    assert bench.ask(f"XTRIM s {by} DELREF") == (7 if by == "MAXLEN 0" else 6)
    assert pending(bench) == ([] if by == "MAXLEN 0" else [str(LARGEST)])


@pytest.mark.parametrize(
    ("line", "is_built"),
    [
        ("XDELEX s IDS 1 1-0", False),
        ("XDELEX s KEEPREF IDS 1 1-0", False),
        ("XACKDEL s g IDS 1 1-0", False),
        ("XTRIM s MAXLEN 1 DELREF", False),
        ("XDELEX s DELREF IDS 1 1-0", True),
        ("XDELEX s ACKED IDS 1 1-0", True),
        ("XACKDEL s g ACKED IDS 1 1-0", True),
        ("XTRIM s MAXLEN 1 ACKED", True),
    ],
)
def test_only_a_command_that_needs_it_builds_the_index(
    bench: Bench, line: str, is_built: bool
) -> None:
    bench.ask(line)
    assert (bench.stream().pending_index is not None) == is_built


def test_a_plain_trim_keeps_the_records(bench: Bench) -> None:
    bench.ask("XTRIM s MAXLEN 0 KEEPREF")
    assert pending(bench) == ["1-0", "2-0", "3-0"]


@pytest.mark.parametrize("line", ["XADD s ACKED 9-0 k v", "XTRIM s MAXLEN 1 DELREF"])
def test_older_levels_do_not_know_the_options(line: str) -> None:
    bench = Bench("8.0")
    bench.ask("XADD s 1-0 k v")
    assert isinstance(bench.ask(line), Refusal)
