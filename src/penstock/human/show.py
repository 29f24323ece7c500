"""Formats data for terminals and pages.

Data in a stream is not trusted. Printed unchanged, it could move the cursor, set the window title, colour the
following text or look like another line. So everything the command line prints passes through `harmless` or
`json_line`:

    b"\\xff\\x00A"           \\xff\\x00A         not UTF-8, control characters
    b"\\x1b]0;evil\\x07"     \\x1b]0;evil\\x07   terminal escapes, C1 included
    "two\\nlines"           two\\nlines        one entry stays one line
    "\\u202etxt.exe"        \\u202etxt.exe     characters that change the writing direction

A backslash in the data is not doubled. Text is for people to read; `--json` is exact.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from penstock.core.stream_id import StreamID

Fields = Sequence[tuple[bytes, bytes]]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME_MS_MAX = 253402300799999  # the last millisecond of the year 9999, where datetime ends
NO_TIME = "-"
BRIEF_BYTES_MAX = 80
BRIEF_FIELDS_MAX = 20
UTF8_TAIL_MAX = 3  # bytes of a character after its first one

_HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_NEEDS_QUOTES = re.compile(r'[ "=]|^$')
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


def harmless(data: bytes | str) -> str:
    """The data as one line of text without control characters."""
    text = data.decode("utf-8", "backslashreplace") if isinstance(data, bytes) else data
    return _HARMFUL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def quoted(data: bytes) -> str:
    """Harmless text, in quotes if it is empty or contains blanks, quotes or `=`."""
    text = harmless(data)
    if _NEEDS_QUOTES.search(text):
        return '"' + text.replace('"', '\\"') + '"'
    return text


def fields_text(fields: Fields) -> str:
    """`sku=A1 note="two words"`, in the order of the fields."""
    return " ".join(f"{quoted(name)}={quoted(value)}" for name, value in fields)


def brief_fields_text(fields: Fields) -> str:
    """As `fields_text`, with long values cut and their lengths added: `body=AAAA... (1,000,000 bytes)`."""
    text = " ".join(f"{_brief(name)}={_brief(value)}" for name, value in fields[:BRIEF_FIELDS_MAX])
    more = len(fields) - BRIEF_FIELDS_MAX
    return f"{text} ... ({more:,} more fields)" if more > 0 else text


def _brief(data: bytes) -> str:
    if len(data) <= BRIEF_BYTES_MAX:
        return quoted(data)
    end = BRIEF_BYTES_MAX
    while end > BRIEF_BYTES_MAX - UTF8_TAIL_MAX and data[end] & 0xC0 == 0x80:
        end -= 1  # half a character would be shown as \xNN
    return f"{quoted(data[:end])}... ({len(data):,} bytes)"


def json_line(value: object) -> str:
    """JSON on one line, in printable ASCII."""
    # The encoder leaves DEL, which is a control character.
    return _ENCODER.encode(value).replace("\x7f", "\\u007f")


def json_text(data: bytes) -> str:
    """Bytes as text for JSON: UTF-8 is exact, other bytes become `\\xNN`."""
    return data.decode("utf-8", "backslashreplace")


def json_object(members: Sequence[tuple[str, str]]) -> str:
    """A JSON object. The values are JSON already. Repeated names are written repeatedly."""
    return "{" + ",".join(f"{json_line(name)}:{value}" for name, value in members) + "}"


def json_fields(fields: Fields) -> str:
    """All fields of an entry as a JSON object. Names may repeat."""
    return json_object([(json_text(name), json_line(json_text(value))) for name, value in fields])


def binary_fields(fields: Fields) -> dict[str, str]:
    """Base64 of values that are not UTF-8, which `json_fields` does not show exactly."""
    return {
        json_text(name): b64encode(value).decode() for name, value in fields if not _is_utf8(value)
    }


def entry_json(stream: bytes, id_: StreamID, fields: Fields) -> str:
    """An entry as JSON. The member `base64` has the values that are not UTF-8, if there are any."""
    members = [
        ("stream", json_line(json_text(stream))),
        ("id", json_line(str(id_))),
        ("time", json_line(time_or_none(id_.ms))),
        ("fields", json_fields(fields)),
    ]
    if binary := binary_fields(fields):
        members.append(("base64", json_line(binary)))
    return json_object(members)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def time_or_none(ms: int) -> str | None:
    """Milliseconds as ISO 8601 in UTC, or None after the year 9999."""
    if ms > TIME_MS_MAX:
        return None
    moment = EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(count: int, what: str) -> str:
    """`1 entry` or `1,234 nodes`."""
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count:,} {what if count == 1 else many}"


def time_text(ms: int) -> str:
    return time_or_none(ms) or NO_TIME


def duration_text(duration_ms: int) -> str:
    """The two largest units: `3d 4h`, `5m`, `1s`, `250ms`."""
    if duration_ms < 1000:
        return f"{duration_ms}ms"
    parts = []
    for unit, unit_ms in _UNITS:
        count, duration_ms = divmod(duration_ms, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return " ".join(parts[:2])


def size_text(size_bytes: int) -> str:
    """`512 B`, `1.2 MB`: powers of 1024."""
    size = float(size_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


def age_text(ms: int, now_ms: int) -> str:
    """`5m` for five minutes ago, `in 5m` for an id ahead of the clock."""
    if ms > now_ms:
        return f"in {duration_text(ms - now_ms)}"
    return duration_text(now_ms - ms)
