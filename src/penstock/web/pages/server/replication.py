"""/replication: the role of the server, its primary and its replicas."""

from __future__ import annotations

from nicegui import ui

from penstock.human.show import size_text
from penstock.web.admin.replication import Replica, replication_of
from penstock.web.board import Board
from penstock.web.elements.frame import PageFrame
from penstock.web.elements.parts import part
from penstock.web.elements.table import DataColumn, DataTable, TableRow
from penstock.web.watch.thresholds import BAD, GOOD, REPLICA_SECONDS, WARN, marked

REFRESH_SECONDS = 2.0
FACT_COLUMNS = [DataColumn("name", "what"), DataColumn("value", "value", wraps=True)]
REPLICA_COLUMNS = [
    DataColumn("address", "replica"),
    DataColumn("state", "state"),
    DataColumn("behind", "behind", numeric=True),
    DataColumn("heard", "last heard", numeric=True),
    DataColumn("offset", "offset", numeric=True),
]


class ReplicationView:
    """Two tables."""

    def __init__(self, frame: PageFrame) -> None:
        self._server = frame.board.server
        with frame.content:
            self._facts = DataTable(FACT_COLUMNS, "this server")
            with part("Replicas"):
                self._replicas = DataTable(
                    REPLICA_COLUMNS, "replicas", empty="No replica is connected to this server."
                )
                ui.label(
                    "Behind: bytes of the replication stream that the replica has not acknowledged."
                ).classes("muted small")

    async def refresh(self) -> None:
        """Ask the server again."""
        found = await replication_of(self._server)
        self._facts.show(
            [
                {"key": name, "name": name, "value": _fact(name, value, found.link_is_down)}
                for name, value in found.facts
            ]
        )
        self._replicas.show([replica_cells(replica) for replica in found.replicas])


def _fact(name: str, value: str, link_is_down: bool) -> object:
    return marked(value, (BAD if link_is_down else GOOD) if name == "link" else "")


def replica_cells(replica: Replica) -> TableRow:
    """A replica as the table shows it."""
    heard = replica.heard_seconds
    return {
        "key": replica.address,
        "address": replica.address,
        "state": marked(replica.state, GOOD if replica.state == "online" else WARN),
        "behind": "unknown" if replica.behind is None else size_text(replica.behind),
        "heard": "unknown"
        if heard is None
        else marked(f"{heard:.0f} s ago", REPLICA_SECONDS.level(heard)),
        "offset": "unknown" if replica.offset is None else f"{replica.offset:,}",
    }


def register(board: Board) -> None:
    """Serve this view."""

    @ui.page(f"{board.path}/replication")
    async def replication() -> None:
        frame = PageFrame(board, "Replication", "replication")
        view = ReplicationView(frame)
        await frame.keep_fresh(view.refresh, REFRESH_SECONDS)
