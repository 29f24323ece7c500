"""The columns that a user chose for streams, remembered in a cookie of the browser.

    {"orders": ["sku", "qty"], "clicks": ["page"]}      newest choice first, as percent-encoded JSON

A browser limits cookies to 4 kB, so only the newest choices are kept.
"""

from __future__ import annotations

import json
from urllib.parse import quote, unquote

from penstock.web.http.names import name_text, parse_name

COLUMNS_COOKIE = "penstock-columns"
COLUMNS_MAX = 12
COOKIE_CHARACTERS_MAX = 3000


def parse_choices(cookie: str | None) -> dict[bytes, list[bytes]]:
    """The choices by stream. A cookie that cannot be read counts as empty."""
    try:
        read = json.loads(unquote(cookie or "{}"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(read, dict):
        return {}
    return {
        parse_name(stream): [parse_name(name) for name in names if isinstance(name, str)][
            :COLUMNS_MAX
        ]
        for stream, names in read.items()
        if isinstance(names, list)
    }


def encode_choices(choices: dict[bytes, list[bytes]], stream: bytes, chosen: list[bytes]) -> str:
    """The cookie after a choice. The oldest choices are dropped if it becomes too long."""
    kept = {stream: chosen} if chosen else {}
    kept |= {name: columns for name, columns in choices.items() if name != stream}
    while True:
        text = json.dumps(
            {name_text(name): [name_text(one) for one in columns] for name, columns in kept.items()}
        )
        cookie = quote(text, safe="")
        if len(cookie) <= COOKIE_CHARACTERS_MAX or not kept:
            return cookie
        kept.popitem()
