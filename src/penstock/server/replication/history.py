"""The replication history of a server's data.

Every byte of the stream that changes the data has a number, from 1 on. `offset` is the number of the last one
that the data contains. Two servers with the same id and the same offset hold the same data. The second id is
that of an earlier history which is the same up to `second_offset`, exclusive: after a promotion, replicas of
the old primary can continue with the new one.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from penstock.persist.replication_point import ReplicationPoint

ID_BYTES = 20
NO_ID = "0" * 2 * ID_BYTES
NO_OFFSET = -1


def new_id() -> str:
    """A random id."""
    return secrets.token_hex(ID_BYTES)


@dataclass(slots=True)
class History:
    """The ids and offsets of one server."""

    id: str = field(default_factory=new_id)
    offset: int = 0
    second_id: str = NO_ID
    second_offset: int = NO_OFFSET
    database: int = 0  # selected in the stream at this offset

    def start_over(self) -> None:
        """Begin a new history: nobody can continue an old one here."""
        self.id = new_id()
        self.second_id, self.second_offset = NO_ID, NO_OFFSET

    def branch_off(self) -> None:
        """Continue under a new id: from now on this server's changes are its own."""
        self.rename(new_id())

    def rename(self, new: str) -> None:
        """Continue under another id; the old one is known up to here."""
        self.second_id, self.second_offset = self.id, self.offset + 1
        self.id = new

    def adopt(self, point: ReplicationPoint) -> None:
        """The data is now that of another server, or of a recovered log."""
        self.id, self.offset, self.database = point.id, point.offset, point.database
        self.second_id, self.second_offset = NO_ID, NO_OFFSET

    def knows(self, replica_id: str, wanted: int) -> bool:
        """Tell whether the bytes up to `wanted`, exclusive, are the same here and under this id."""
        if replica_id == self.id:
            return True
        return replica_id == self.second_id and wanted <= self.second_offset

    def question(self) -> tuple[str, int]:
        """The id and the first missing byte, to ask a primary with.

        A server that has changed nothing since it branched off asks with the older id: only that one can be
        known elsewhere.
        """
        wanted = self.offset + 1
        return (self.second_id if wanted == self.second_offset else self.id), wanted
