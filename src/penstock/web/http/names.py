"""Names of streams, groups and consumers in URLs, and the URLs of pages.

A name is bytes. In a URL it is text: UTF-8 unchanged, every other byte as \\xNN, and a doubled backslash, so
that parsing is exact.

    b"orders:\\xff"     orders:\\xff      stream?name=orders:%5Cxff
    b"a\\\\xff"          a\\\\xff          a backslash in the name
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

from penstock.human.show import harmless

_ESCAPED = re.compile(rb"\\(\\|x([0-9a-f]{2}))")


def name_text(name: bytes) -> str:
    """The name as text for a URL, before percent-encoding."""
    return name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def escaped_text(data: bytes) -> str:
    """As name_text, with invisible and control characters escaped too."""
    return "".join(_spelled(character) for character in name_text(data))


def _spelled(character: str) -> str:
    if harmless(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode())


def parse_name(text: str) -> bytes:
    """The reverse of name_text and escaped_text. Other text is taken as UTF-8."""
    data = text.encode("utf-8", "surrogateescape")
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[2].decode()) if found[2] else b"\\", data)


def link(view: str, name: bytes | None = None, /, **more: str | int | bytes | None) -> str:
    """The URL of a page of the same server. Parameters that are None or empty are left out.

    It is relative, so that it is right below `/` and below `/at/NAME/`.
    """
    words: dict[str, str] = {} if name is None else {"name": name_text(name)}
    for key, value in more.items():
        if value is not None and value != "":
            words[key] = name_text(value) if isinstance(value, bytes) else str(value)
    return view + (f"?{urlencode(words, quote_via=quote)}" if words else "")
