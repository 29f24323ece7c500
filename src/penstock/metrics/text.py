"""Prometheus's text format, version 0.0.4.

    page = Page()
    page.family("penstock_stream_length", "gauge", "Entries.").add(3, stream="orders")
    page.text()

    # HELP penstock_stream_length Entries.
    # TYPE penstock_stream_length gauge
    penstock_stream_length{stream="orders"} 3

The samples of a family are written together, in whichever order they were added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.metrics.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PIECE_LINES = 1000
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

_IN_VALUES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})


class Family:
    """The samples of one metric."""

    __slots__ = ("_lines", "_name")

    def __init__(self, name: str, kind: str, meaning: str) -> None:
        self._name = name
        self._lines = [f"# HELP {name} {meaning.translate(_IN_HELP)}", f"# TYPE {name} {kind}"]

    def add(self, value: float, **labels: str) -> None:
        """Add a sample."""
        self._lines.append(f"{self._name}{_shown(labels)} {value}")

    def add_histogram(self, histogram: Histogram, **labels: str) -> None:
        """Add the samples of a histogram."""
        *counts, count = histogram.cumulated()
        limits = [*(f"{bound:g}" for bound in histogram.bounds), "+Inf"]
        for limit, up_to in zip(limits, [*counts, count], strict=True):
            self._lines.append(f"{self._name}_bucket{_shown({**labels, 'le': limit})} {up_to}")
        shown = _shown(labels)
        self._lines.append(f"{self._name}_sum{shown} {histogram.total}")
        self._lines.append(f"{self._name}_count{shown} {count}")

    def lines(self) -> list[str]:
        """The family as text; nothing if it has no samples."""
        return self._lines if len(self._lines) > 2 else []


class Page:
    """What a scrape returns."""

    def __init__(self) -> None:
        self._families: list[Family] = []

    def family(self, name: str, kind: str, meaning: str) -> Family:
        """Begin a family."""
        made = Family(name, kind, meaning)
        self._families.append(made)
        return made

    def gauge(self, name: str, meaning: str, value: float) -> None:
        """A gauge with one sample."""
        self.family(name, GAUGE, meaning).add(value)

    def counter(self, name: str, meaning: str, value: float) -> None:
        """A counter with one sample."""
        self.family(name, COUNTER, meaning).add(value)

    def take_pieces(self) -> Iterator[str]:
        """Take the page out in pieces of some thousand characters, for callers that must not take long at a
        time.

        Lines are freed as they are taken, for the same reason: the page is empty afterwards.
        """
        for family in self._families:
            lines = family.lines()
            while lines:
                yield _joined(lines[:PIECE_LINES])
                del lines[:PIECE_LINES]

    def text(self) -> str:
        """The whole page."""
        return "".join(_joined(family.lines()) for family in self._families)


def _joined(lines: Sequence[str]) -> str:
    return "\n".join((*lines, "")) if lines else ""


def _shown(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{value.translate(_IN_VALUES)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"
