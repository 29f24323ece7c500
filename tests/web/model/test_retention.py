"""What a retention rule would remove, as the page of a stream asks for it."""

from __future__ import annotations

import pytest

from penstock.engine.retention.policy import parse_policies, policy_of
from penstock.web.model.retention import (
    NO_RETENTION,
    RetentionRule,
    effect_of,
    parse_rule,
    pattern_of,
    rule_of_server,
)
from penstock.web.refusal import Refused
from tests.web.conftest import Live


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("age 7d", ["age", "1w"]),
        ("acked yes length 10", ["length", "10", "acked", "yes"]),
        ("bytes 1kb", ["bytes", "1024"]),
    ],
)
def test_a_rule_is_parsed(text: str, words: list[str]) -> None:
    assert parse_rule(text).words == words


@pytest.mark.parametrize(
    "text", ["age", "age x", "colour red", "length 5 other age 1d", "force yes"]
)
def test_a_wrong_rule_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_rule(text)


def test_a_rule_is_tried_without_changing_anything(live_penstock: Live) -> None:
    client = live_penstock.client
    client.flushall()
    for number in range(500):
        client.xadd("s", {"n": number}, id=f"{number + 1}-0")
    rule = RetentionRule({"length": "100"})
    effect = live_penstock.ask(lambda server: effect_of(server, b"s", rule))
    assert (effect.length, effect.removed_entries, effect.first_kept) == (500, 400, b"400-1")
    assert client.xlen("s") == 500
    client.xgroup_create("s", "g", id="0")
    held = RetentionRule({"length": "100", "acked": "yes"})
    effect = live_penstock.ask(lambda server: effect_of(server, b"s", held))
    assert (effect.removed_entries, effect.held_by) == (0, b"g")


def test_the_rule_of_the_server_is_found_by_its_pattern(live_penstock: Live) -> None:
    client = live_penstock.client
    client.config_set("stream-retention", "order* age 1d acked yes logs:* bytes 1gb")
    try:
        found = live_penstock.ask(lambda server: rule_of_server(server, b"orders"))
        assert found is not None
        assert found.words == ["age", "1d", "acked", "yes"]
        assert live_penstock.ask(lambda server: rule_of_server(server, b"other")) is None
    finally:
        client.config_set("stream-retention", "")


def test_other_servers_have_no_retention(live_redis: Live) -> None:
    with pytest.raises(Refused, match=NO_RETENTION):
        live_redis.ask(lambda server: rule_of_server(server, b"s"))


@pytest.mark.parametrize(
    "name",
    ["orders", "a*", "a?c", "[ab]", "x[", "back\\slash", "Grüße:7", "age", "FORCE", "*", "-"],
)
def test_the_pattern_of_a_name_matches_no_other_stream(name: str) -> None:
    words = f"other length 1 {pattern_of(name.encode())} length 10".split()
    policies = parse_policies(words)
    found = policy_of(policies, name.encode())
    assert (len(policies), found) == (2, policies[1])
    for other in (f"{name}s", "abc", "a", "b", name[:-1], f"{name[:-1]}z"):
        assert policy_of(policies, other.encode()) is None


@pytest.mark.parametrize(
    "name", [b"", b"two words", b"it's", b'"', b"a\n", b"\xff", b"\xc2\xa0", b"\xe2\x80\xae"]
)
def test_a_name_that_the_setting_cannot_hold_has_no_pattern(name: bytes) -> None:
    with pytest.raises(Refused, match="cannot hold this name"):
        pattern_of(name)
