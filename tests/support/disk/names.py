"""The messages that a producer has sent under names, with XADD IDMP or IDMPAUTO."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from penstock.core.idempotency import DURATION_S_DEFAULT, SIZE_DEFAULT
from tests.support.disk.server_state import Settings


@dataclass(slots=True)
class Message:
    """A message of a producer, with the words that send it."""

    stream: bytes
    producer: bytes
    token: bytes
    words: list[bytes]


@dataclass(slots=True)
class Names:
    """The messages that one stream must recognise, with their ids: by producer, oldest first."""

    settings: Settings = (DURATION_S_DEFAULT, SIZE_DEFAULT)
    known: dict[bytes, OrderedDict[bytes, tuple[Message, bytes]]] = field(default_factory=dict)

    def record(self, message: Message, entry_id: bytes) -> None:
        """Note that a message was added. The oldest of its producer is forgotten if there are too many."""
        sent = self.known.setdefault(message.producer, OrderedDict())
        sent[message.token] = (message, entry_id)
        if len(sent) > self.settings[1]:
            sent.popitem(last=False)

    def use(self, settings: Settings) -> None:
        """Note the settings of the stream. A change forgets all messages."""
        if settings != self.settings:
            self.settings = settings
            self.known.clear()

    def all(self) -> list[tuple[Message, bytes]]:
        """All messages with their ids."""
        return [pair for sent in self.known.values() for pair in sent.values()]
