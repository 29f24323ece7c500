"""The objects that all pages share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.history import GroupHistory
from penstock.web.server.asking import ServerClient
from penstock.web.server.health import ServerHealth
from penstock.web.watch.archive import HistoryArchive
from penstock.web.watch.figures import ServerFigures
from penstock.web.watch.group_watch import GroupWatch
from penstock.web.watch.recorder import Recorder

PORT_DEFAULT = 8379
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of `penstock ui`, which has checked them."""

    url: str
    port: int = PORT_DEFAULT
    bind: str = LOOPBACK[0]
    password: str = field(default="", repr=False)
    allow_writes: bool = False
    cluster: bool = False
    proxies: tuple[str, ...] = ()
    certificate: str | None = None
    key: str | None = None
    state: Path | None = None  # a folder for the history


class Board:
    """A server and the data collected from it. Created once, before the pages.

    Raises: BadUrl, ArchiveError.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.server = ServerClient(settings.url, settings.allow_writes, settings.cluster)
        self.health = ServerHealth(self.server)
        self.history = GroupHistory()
        self.catalogue = StreamCatalogue(self.server, self.history)
        self.figures = ServerFigures(self.server, self.catalogue)
        self.watch = GroupWatch(self.server, self.catalogue)
        state = settings.state
        archive = None if state is None else HistoryArchive(state, self.server.name)
        self.recorder = Recorder(archive, self.catalogue, self.figures, self.history)
