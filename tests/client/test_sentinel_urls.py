"""URLs that name Sentinels: lists of them, TLS, and a login of their own."""

from __future__ import annotations

from typing import Any

import pytest
from redis.connection import SSLConnection
from redis.sentinel import SentinelManagedSSLConnection

from penstock.client.address import BadUrl, parse_url, split_urls
from tests.support.replication.false_sentinel import FalseSentinel


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("redis://a:1", ["redis://a:1"]),
        (" redis://a:1,rediss://b:2/3 ", ["redis://a:1", "rediss://b:2/3"]),
        ("redis://a:1,  unix:///tmp/b", ["redis://a:1", "unix:///tmp/b"]),
        ("redis+sentinel://h:1,h:2,h:3/queue", ["redis+sentinel://h:1,h:2,h:3/queue"]),
        (
            "redis+sentinel://:p,w@h:1,h:2/queue?sentinel_tls=no,rediss+sentinel://i,j:2/other/1",
            [
                "redis+sentinel://:p,w@h:1,h:2/queue?sentinel_tls=no",
                "rediss+sentinel://i,j:2/other/1",
            ],
        ),
        ("redis://a:1,b:2", ["redis://a:1,b:2"]),  # no scheme: one URL, which is then refused
        ("", [""]),
    ],
)
def test_a_comma_separates_two_urls_only_before_a_scheme(text: str, urls: list[str]) -> None:
    assert split_urls(text) == urls


def test_each_url_of_a_list_keeps_its_sentinels() -> None:
    text = "redis+sentinel://h:1,h:2,h/queue/2, redis+sentinel://i:1,j:2/other"
    first, second = map(parse_url, split_urls(text))
    assert (first.name, first.database) == ("queue", 2)
    assert first.sentinels == (("h", 1), ("h", 2), ("h", 26379))
    assert second.name == "other"
    assert second.sentinels == (("i", 1), ("j", 2))


def pools(url: str) -> tuple[Any, Any]:
    """The connections to the primary, and to the first Sentinel."""
    own: Any = parse_url(url).connect(1, 1).connection_pool
    return own, own.sentinel_manager.sentinels[0].connection_pool


def test_with_tls_the_sentinels_are_asked_by_tls_too() -> None:
    own, theirs = pools("rediss+sentinel://:secret@h:1,h:2/queue/3?ssl_ca_certs=/ca.crt")
    assert own.connection_class is SentinelManagedSSLConnection
    assert theirs.connection_class is SSLConnection
    assert theirs.connection_kwargs["ssl_ca_certs"] == "/ca.crt"
    assert own.connection_kwargs["password"] == "secret"
    assert own.connection_kwargs["db"] == 3
    assert theirs.connection_kwargs.get("password") is None


@pytest.mark.parametrize(
    ("url", "is_tls"),
    [
        ("redis+sentinel://h/queue", False),
        ("redis+sentinel://h/queue?sentinel_tls=yes", True),
        ("rediss+sentinel://h/queue?sentinel_tls=no", False),
    ],
)
def test_sentinels_may_differ_from_the_servers(url: str, is_tls: bool) -> None:
    assert (pools(url)[1].connection_class is SSLConnection) == is_tls


def test_sentinels_may_have_a_login_of_their_own() -> None:
    with FalseSentinel({}) as server:
        client: Any = parse_url(
            server.url + "?sentinel_username=guard&sentinel_password=p%26w&socket_keepalive=yes"
        ).connect(5, 5)
        client.execute_command("SET", "a", "1")
        logins = [words for words in server.heard if words[0] == b"AUTH"]
        assert logins == [[b"AUTH", b"guard", b"p&w"]]


@pytest.mark.parametrize("query", ["sentinel_fudge=1", "sentinel_tls=maybe"])
def test_other_words_about_sentinels_are_refused(query: str) -> None:
    with pytest.raises(BadUrl, match="sentinel_username"):
        parse_url(f"redis+sentinel://h/queue?{query}")
