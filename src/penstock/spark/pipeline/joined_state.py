"""Stores which outputs have joined their query, in LAKE/_checkpoints/OUTPUT.joined-N.json.

    {"stream": "rejected", "after": {"orders": "1700000000000-0"}}   has joined at this position
    {"stream": "rejected", "left": {"orders": "1700000000000-0"}}    not in the file since this position
    {"stream": "minutes", "after_ms": 1700000000000}                 the same for windows: a watermark
    {"stream": "minutes", "left_ms": 1700000000000}
    {"query": "main", "id": "6f1c..."}                               an output of a section [[output]]
    {"start": {"orders": "1700000000000-0"}, "starting": "latest"}   of a query: where its first batch starts,
                                                                     and the key that chose it

An output of a section has the same keys for its position, and an id by which a database knows it. `replaced`
has the ids that it had before a reset. A stream that was reset has {"reset": "8 hex digits"}, so that its
entries are not taken for those of an earlier write.

A file is never replaced: the next state has the next number, then the old file is deleted. So a crash leaves
one of the two states.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from penstock.spark.lake.local_files import TextFiles
from penstock.spark.lake.manifest import damaged

_FILE = re.compile(r"(.+)\.joined-(\d+)\.json")


_OF_SECTION = ("query", "id", "replaced")


def identity_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """What stays the same in the states of an output of a section."""
    return {name: state[name] for name in _OF_SECTION if name in state}


def ids_of_section(state: Mapping[str, Any]) -> list[str]:
    """The ids that an output of a section has or had, the oldest first."""
    return [*state.get("replaced", []), *([state["id"]] if "id" in state else [])]


class JoinedStates:
    """The states of the outputs of a pipeline that are not tables of the lake."""

    def __init__(self, files: TextFiles, directory: str) -> None:
        self._files = files
        self._directory = directory

    def names(self) -> set[str]:
        """The outputs with a state."""
        return {output for output, _ in self._found()}

    def read(self, output: str) -> dict[str, Any]:
        """The state of an output, empty if it has none. Raises: ArchiveError."""
        number = self._newest(output)
        if number is None:
            return {}
        path = self._path(output, number)
        try:
            return dict(json.loads(self._files.read(path)))
        except ValueError:
            raise damaged(path) from None

    def write(self, output: str, state: dict[str, Any]) -> None:
        """Replace the state of an output."""
        before = self._newest(output)
        number = 0 if before is None else before + 1
        self._files.write(self._path(output, number), json.dumps(state))
        for other, old in self._found():
            if other == output and old < number:
                self._files.delete(self._path(output, old))

    def _newest(self, output: str) -> int | None:
        return max((number for name, number in self._found() if name == output), default=None)

    def _found(self) -> list[tuple[str, int]]:
        matches = (_FILE.fullmatch(name) for name in self._files.names(self._directory))
        return [(one[1], int(one[2])) for one in matches if one]

    def _path(self, output: str, number: int) -> str:
        return f"{self._directory}/{output}.joined-{number}.json"
