"""The connections of a server, from CLIENT LIST."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.client.replies import blob
from penstock.human.show import harmless
from penstock.web.server.asking import ServerClient

SHOWN_MAX = 200
SORTS = ("addr", "name", "age", "idle", "db", "cmd", "user", "tot-mem")
NUMBERS = ("age", "idle", "db", "tot-mem")

Client = Mapping[str, str]


async def clients_of(server: ServerClient) -> list[Client]:
    """Every connection as the fields that the server sends."""
    text = blob(await server.ask("CLIENT", "LIST")).decode("utf-8", "backslashreplace")
    return [parse_client(line) for line in text.splitlines() if line.strip()]


def parse_client(line: str) -> Client:
    """`id=3 addr=127.0.0.1:5000 name= age=7` as a dict."""
    pairs = (word.partition("=") for word in line.split(" "))
    return {name: harmless(value) for name, equals, value in pairs if equals}


def pick(clients: list[Client], search: str, sort: str, descending: bool) -> list[Client]:
    """The clients with a field that contains `search`, sorted."""
    wanted = search.casefold()
    found = [one for one in clients if any(wanted in value.casefold() for value in one.values())]
    return sorted(found, key=lambda one: _key(one, sort), reverse=descending)


def _key(client: Client, sort: str) -> tuple[int, str]:
    value = client.get(sort, "")
    if sort in NUMBERS:
        return (int(value) if value.isascii() and value.isdecimal() else -1, "")
    return (0, value)
