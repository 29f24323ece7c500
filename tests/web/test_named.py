"""The names of several servers."""

from __future__ import annotations

import pytest

from penstock.client.address import BadUrl
from penstock.web.board import Settings
from penstock.web.server.named import SERVERS_MAX, BadServers, parse_servers


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("redis://10.0.0.7:6379", "10.0.0.7-6379"),
        ("redis://10.0.0.7:6379/2", "10.0.0.7-6379-2"),
        ("redis://user:secret@[::1]:7000", "1-7000"),
        ("prod=redis://:a=b@10.0.0.7", "prod"),
        ("redis://h?socket_connect_timeout=1", "h-6379"),
        ("unix:///run/penstock.sock", "run-penstock.sock"),
    ],
)
def test_a_server_has_a_name(word: str, name: str) -> None:
    (server,) = parse_servers([word])
    assert server.name == name
    assert "secret" not in repr(server)


def test_two_databases_of_one_server_are_two_servers() -> None:
    found = parse_servers(["redis://h", "redis://h/1"])
    assert [server.name for server in found] == ["h-6379", "h-6379-1"]


def test_a_wrong_url_is_refused_without_quoting_it() -> None:
    with pytest.raises(BadUrl) as error:
        parse_servers(["prod=http://secret@h"])
    assert "secret" not in str(error.value)
    with pytest.raises(BadServers, match="at most"):
        parse_servers([f"redis://h:{1000 + number}" for number in range(SERVERS_MAX + 1)])


def test_paths_name_the_server_only_if_there_are_several() -> None:
    one = Settings(parse_servers(["a=redis://h"]))
    two = Settings(parse_servers(["a=redis://h", "b=redis://i"]))
    assert (one.path_of("a"), two.path_of("b")) == ("", "/at/b")
