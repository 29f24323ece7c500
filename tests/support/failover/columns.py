"""The columns of the campaign: kind of server, setting, number of servers."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.replication.sentinels import PENSTOCK, REDIS

NONE, WAIT, TO_WRITE, ACK = "none", "WAIT 1", "min-replicas-to-write", "min-replicas-ack"
ACK_ONE = "min-replicas-ack 1"  # of two
SIZES = {"pair": 2, "trio": 3}


@dataclass(frozen=True, slots=True)
class Column:
    """Servers under one setting, which names all replicas where it has a number."""

    kind: str
    setting: str
    size: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.size}, {self.setting}"

    @property
    def servers(self) -> int:
        """How many there are."""
        return SIZES[self.size]

    @property
    def waits(self) -> bool:
        """Whether clients send WAIT 1 after each change, and trust only what it confirms."""
        return self.setting == WAIT

    @property
    def lines(self) -> str:
        """The lines of the configuration file."""
        replicas = self.servers - 1
        lines = {
            TO_WRITE: f"min-replicas-to-write {replicas}\nmin-replicas-max-lag 2\n",
            ACK: f"min-replicas-ack {replicas}\nmin-replicas-ack-timeout 500\n",
            ACK_ONE: "min-replicas-ack 1\nmin-replicas-ack-timeout 500\n",
        }
        return "appendfsync always\n" + lines.get(self.setting, "")


COLUMNS = [
    Column(kind, setting, size)
    for size in SIZES
    for kind, setting in (
        *((REDIS, setting) for setting in (NONE, WAIT, TO_WRITE)),
        *((PENSTOCK, setting) for setting in (NONE, WAIT, TO_WRITE, ACK)),
    )
]
COLUMNS.append(Column(PENSTOCK, ACK_ONE, "trio"))
