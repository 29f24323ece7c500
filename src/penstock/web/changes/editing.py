"""Fields in boxes that people type into, and back without a loss.

What is plain text stands in its box as it is, lines and backslashes too. What is not UTF-8, or has
characters that a box would swallow or that cannot be seen, stands there with \\xNN for each such byte and a
doubled backslash; its box says so, and what comes out of it is read that way. A value too long for a box is
not shown, and sent as it was.

    b"two\\nlines"      two             a box of several lines
                       lines
    b"\\x00\\xffA"       \\x00\\xffA       escaped
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.human.show import harmless
from penstock.web.http.names import escaped_text, parse_name

BOX_BYTES_MAX = 64 * 1024
BOXES_MAX = 100


@dataclass(frozen=True, slots=True)
class Box:
    """What stands in a box for some bytes; `text` is None if they do not fit into one."""

    data: bytes
    text: str | None
    escaped: bool

    def read(self, text: str) -> bytes:
        """The bytes that the box means, as it was edited."""
        if self.text is None or text == self.text:
            return self.data
        return parse_name(text) if self.escaped else text.encode("utf-8", "surrogatepass")


def box_of(data: bytes, one_line: bool = False) -> Box:
    """The box for a name (one line) or for a value."""
    if len(data) > BOX_BYTES_MAX:
        return Box(data, None, escaped=False)
    lines = [data] if one_line else data.split(b"\n")
    try:
        plain = all(harmless(line) == line.decode() for line in lines)
    except UnicodeDecodeError:
        plain = False
    if plain:
        return Box(data, data.decode(), escaped=False)
    return Box(data, escaped_text(data), escaped=True)
