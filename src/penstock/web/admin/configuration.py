"""The settings of a server, from CONFIG GET. Secrets are not shown."""

from __future__ import annotations

import re

from penstock.client.replies import array, blob
from penstock.human.show import harmless
from penstock.web.server.asking import ServerClient

SECRET = re.compile(r"(pass|password|auth|secret)$", re.IGNORECASE)
HIDDEN = "(set, not shown)"


async def settings_of(server: ServerClient) -> list[tuple[str, str]]:
    """Names and values, sorted by name."""
    sent = array(await server.ask("CONFIG", "GET", "*"))
    pairs = zip(sent[::2], sent[1::2], strict=False)
    return sorted(shown_setting(harmless(blob(name)), blob(value)) for name, value in pairs)


def shown_setting(name: str, value: bytes) -> tuple[str, str]:
    """A setting as a page shows it."""
    return (name, HIDDEN) if value and SECRET.search(name) else (name, harmless(value))


def pick(settings: list[tuple[str, str]], search: str) -> list[tuple[str, str]]:
    """The settings whose name or value contains `search`."""
    wanted = search.casefold()
    return [one for one in settings if wanted in one[0].casefold() or wanted in one[1].casefold()]
