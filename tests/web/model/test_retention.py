"""What a retention rule would remove, as the page of a stream asks for it."""

from __future__ import annotations

import pytest

from penstock.web.model.retention import (
    NO_RETENTION,
    RetentionRule,
    effect_of,
    parse_rule,
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
