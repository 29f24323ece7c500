"""Backends between a worker and its server that lose replies or fail."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.errors import ConnectionLost
from penstock.work.backend import Backend, Word


class Between:
    """Passes everything on; the base of the others."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def check(self, keys: Sequence[str], stream: str) -> None:
        self._backend.check(keys, stream)

    def work(self, name: str, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        return self._backend.work(name, keys, arguments)

    def ask(self, *words: Word) -> Any:
        return self._backend.ask(*words)

    def wait(self, after: Mapping[str, str], block_ms: int) -> bool:
        return self._backend.wait(after, block_ms)

    def another(self) -> Backend:
        other = copy.copy(self)
        other._backend = self._backend.another()
        return other

    def close(self) -> None:
        self._backend.close()


class FailingBackend(Between):
    """Commands that are named here raise; with `runs` they run first, and only their reply is lost."""

    def __init__(self, backend: Backend, runs: bool = False) -> None:
        super().__init__(backend)
        self._runs = runs
        self.errors: dict[str, Exception] = {}

    def work(self, name: str, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        error = self.errors.get(name)
        if error is None:
            return super().work(name, keys, arguments)
        if self._runs:
            super().work(name, keys, arguments)
        raise error


class LossyBackend(Between):
    """A backend whose replies are lost now and then: the command has run, the caller cannot know.

    The first reply of each command is always lost.
    """

    def __init__(self, backend: Backend, dice: random.Random) -> None:
        super().__init__(backend)
        self._dice = dice
        self.is_lossy = True
        self.lost: Counter[str] = Counter()

    def work(self, name: str, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        reply = super().work(name, keys, arguments)
        if self.is_lossy and (name not in self.lost or self._dice.random() < 0.1):
            self.lost[name] += 1
            raise ConnectionLost("a reply was lost")
        return reply
