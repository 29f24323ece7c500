"""Searching for the streams of a pattern, and how often the server is asked."""

from __future__ import annotations

import pytest

from penstock.spark import connection
from penstock.spark.connection import Servers, StreamName
from penstock.spark.source.options import parse_options
from tests.spark.conftest import Broker


def test_the_result_of_a_long_search_is_kept_for_a_while(
    penstock: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SEARCH_REST", 10**9)
    place = parse_options({**penstock.options, "streamPattern": "s*"}).place
    penstock.client.xadd("s1", {"a": 1})
    penstock.client.set("s0", "no stream")
    with monkeypatch.context() as patched, Servers(place) as servers:
        patched.setattr(connection, "SEARCH_PAGES_MAX", 0)
        assert servers.matching("s*") == [StreamName(b"s1")]
        penstock.client.xadd("s2", {"a": 1})
        assert servers.matching("s*") == [StreamName(b"s1")]
        assert servers.matching("?2") == [StreamName(b"s2")]
    with Servers(place) as servers:
        assert servers.matching("s*") == [StreamName(b"s1"), StreamName(b"s2")]
        penstock.client.delete("s1")
        assert servers.matching("s*") == [StreamName(b"s2")]
