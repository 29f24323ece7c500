"""How attempts end, and the words that settle a batch of them in one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.work.backend import Word
from penstock.work.message import Sent
from penstock.work.names import dead_key, delayed_key, mark_key

TEXT_BYTES_MAX = 16_384  # of a reason or a traceback
MARK_MS = 86_400_000  # how long a dedup name is remembered, after its entry is due

ACK = "ACK"
RETRY = "RETRY"
DEAD = "DEAD"


@dataclass(slots=True)
class Outcome:
    """How an attempt of one entry ended."""

    id: str
    attempt: int
    kind: str
    delay: float = 0
    next_attempt: int = 0  # the attempts begun after a RETRY: one less if it was given back
    reason: str = ""
    trace: str = ""
    sent: Sequence[Sent] = field(default=())
    suspect: bool = False  # with RETRY: the attempt did not begin, and the entry stays a suspect


def cut(text: str) -> bytes:
    """A text for the dead letters, without its middle if it is very long."""
    raw = text.encode(errors="backslashreplace")
    if len(raw) <= TEXT_BYTES_MAX:
        return raw
    half = TEXT_BYTES_MAX // 2
    return raw[:half] + b"\n...\n" + raw[-half:]


class Keys:
    """The keys of a command, each once, known by their position from 1."""

    def __init__(self, *first: str) -> None:
        self.all = list(first)

    def number(self, key: str) -> int:
        if key not in self.all:
            self.all.append(key)
        return self.all.index(key) + 1


def sending_words(keys: Keys, sent: Sent) -> list[Word]:
    """The arguments for one entry to add."""
    delay_ms = round(sent.delay * 1000)
    words: list[Word] = [
        keys.number(sent.stream),
        keys.number(delayed_key(sent.stream)) if delay_ms else 0,
        keys.number(mark_key(sent.stream, sent.dedup)) if sent.dedup is not None else 0,
    ]
    return [*words, delay_ms, delay_ms + MARK_MS, len(sent.fields), *sent.fields]


def settlement(stream: str, outcomes: Sequence[Outcome]) -> tuple[list[str], list[Word]]:
    """The keys of a SETTLE, and its words after group and consumer."""
    keys = Keys(stream, dead_key(stream))
    words: list[Word] = []
    for one in outcomes:
        words += [one.kind, one.id, one.attempt]
        if one.kind == RETRY:
            words += [round(one.delay * 1000), one.next_attempt]
        elif one.kind == DEAD:
            words += [cut(one.reason), cut(one.trace)]
        for sent in one.sent:
            words += ["SEND", *sending_words(keys, sent)]
    return keys.all, words
