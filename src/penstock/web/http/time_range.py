"""The time range of all charts, remembered in a cookie of the browser."""

from __future__ import annotations

RANGE_COOKIE = "penstock-range"
# Text for people, and seconds. 0 is what the dashboard has in memory.
RANGES = {
    0: "recent",
    3600: "1 hour",
    6 * 3600: "6 hours",
    24 * 3600: "1 day",
    3 * 24 * 3600: "3 days",
    14 * 24 * 3600: "14 days",
}


def parse_range(cookie: str | None) -> int:
    """The seconds that a cookie names. Anything else is 0."""
    text = cookie or ""
    seconds = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0
    return seconds if seconds in RANGES else 0
