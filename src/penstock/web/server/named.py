"""The servers that a dashboard shows, and their names in URLs.

redis://10.0.0.7:6379           named 10.0.0.7-6379
prod=redis://10.0.0.7:6379      named prod
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.client.address import parse_url
from penstock.errors import PenstockError

SERVERS_MAX = 50
NAME_LENGTH_MAX = 40

_NAMED = re.compile(rf"([A-Za-z0-9._-]{{1,{NAME_LENGTH_MAX}}})=(.*)", re.ASCII | re.DOTALL)
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


class BadServers(PenstockError):
    """Servers that cannot be shown together. The text is for the user, and quotes no URL."""


@dataclass(frozen=True, slots=True)
class NamedServer:
    """A server, and its name for people and in the URLs of pages."""

    name: str
    url: str = field(repr=False)


def parse_servers(words: Sequence[str]) -> tuple[NamedServer, ...]:
    """Each word is a URL or NAME=URL. Raises: BadServers, BadUrl."""
    if len(words) > SERVERS_MAX:
        raise BadServers(f"a dashboard shows at most {SERVERS_MAX} servers, not {len(words)}")
    found = tuple(_named(word) for word in words)
    names = [server.name for server in found]
    for name in names:
        if names.count(name) > 1:
            raise BadServers(f"two servers have the name {name}: name them with NAME=URL")
    return found


def _named(word: str) -> NamedServer:
    given = _NAMED.fullmatch(word)
    url = word if given is None else given[2]
    server = parse_url(url)
    if given is not None:
        return NamedServer(given[1], url)
    # Two databases of a server are two entries of the list.
    text = server.label if server.database else server.name
    return NamedServer(_UNFIT.sub("-", text).strip("-")[:NAME_LENGTH_MAX] or "server", url)
