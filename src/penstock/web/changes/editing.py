"""Converts fields to the text of input boxes and back, without loss.

Plain text is shown unchanged, including newlines and backslashes. Bytes that are not UTF-8, invisible
characters and characters that a box would drop are escaped as \\xNN, and backslashes are doubled; the label
of the box says so, and its text is parsed that way. A value too long for a box is not shown and is sent
unchanged.

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
    """The text of a box for some bytes. `text` is None if they are too long for a box."""

    data: bytes
    text: str | None
    escaped: bool

    def read(self, text: str) -> bytes:
        """The bytes that the edited text stands for."""
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
