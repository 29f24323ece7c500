"""The objects that all pages of a server share, and the settings of the dashboard."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from penstock.client.address import parse_url
from penstock.human.show import harmless
from penstock.metrics.listener import BIND_DEFAULT
from penstock.web.background import Work
from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.history import GroupHistory
from penstock.web.server.asking import ServerClient
from penstock.web.server.health import ServerHealth
from penstock.web.server.named import NamedServer
from penstock.web.watch.archive import HistoryArchive
from penstock.web.watch.figures import ServerFigures
from penstock.web.watch.group_watch import GroupWatch
from penstock.web.watch.pipeline_watch import PipelineWatch
from penstock.web.watch.problems import Collected, Problem, find_problems
from penstock.web.watch.recorder import Recorder
from penstock.web.watch.thresholds import WARN

PORT_DEFAULT = 8379
PATH_OF_SERVERS = "/at/"


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of `penstock ui`, which has checked them."""

    servers: tuple[NamedServer, ...]
    port: int = PORT_DEFAULT
    bind: str = BIND_DEFAULT
    password: str = field(default="", repr=False)
    viewer_password: str = field(default="", repr=False)
    allow_writes: bool = False
    cluster: bool = False
    proxies: tuple[str, ...] = ()
    certificate: str | None = None
    key: str | None = None
    state: Path | None = None  # a folder for the history
    metrics_port: int | None = None
    metrics_bind: str = BIND_DEFAULT

    @property
    def has_several(self) -> bool:
        """Whether the dashboard shows more than one server."""
        return len(self.servers) > 1

    def path_of(self, name: str) -> str:
        """The start of the paths of a server's pages: `/at/NAME`, or empty if there is only one server."""
        return f"{PATH_OF_SERVERS}{name}" if self.has_several else ""


class Board:
    """A server and the data collected from it. Created once, before the pages.

    Raises: BadUrl, ArchiveError.
    """

    def __init__(self, settings: Settings, server: NamedServer) -> None:
        self.settings = settings
        self.name = server.name
        self.path = settings.path_of(server.name)
        self.server = ServerClient(server.url, settings.allow_writes, settings.cluster)
        self.health = ServerHealth(self.server)
        self.history = GroupHistory()
        self.catalogue = StreamCatalogue(self.server, self.history, len(settings.servers))
        self.figures = ServerFigures(self.server, self.catalogue)
        self.watch = GroupWatch(self.server, self.catalogue)
        self.pipelines = PipelineWatch(self.server, self.catalogue)
        state = settings.state
        archive = None if state is None else HistoryArchive(state, self._archive_key(server.url))
        self.recorder = Recorder(
            archive, self.catalogue, self.figures, self.history, self.pipelines
        )

    def _archive_key(self, url: str) -> str:
        """The name of the server in the archive. Two databases of one server have two histories."""
        label = parse_url(url)
        return self.server.name if not label.database else label.label

    def background(self) -> dict[str, Work]:
        """The work that collects data, until it is cancelled."""
        return {
            "the health check": self.health.run,
            "the catalogue of streams": self.catalogue.run,
            "the key figures": self.figures.run,
            "the watch over groups": self.watch.run,
            "the watch over pipelines": self.pipelines.run,
            "the history": self.recorder.run,
        }

    def problems(self) -> list[Problem]:
        """What is wrong now, as far as the background work has found it. Asks no server."""
        known = Collected(
            info=self.figures.info,
            watched=self.watch.groups,
            streams=self.catalogue.all_facts(),
            history=self.history,
            pipelines=self.pipelines.recent,
            still=self.pipelines.still,
        )
        found = find_problems(known, self.server.known_now_ms())
        if self.recorder.problem:
            detail = harmless(self.recorder.problem)
            found.append(Problem(WARN, "No history", "dashboard", detail, ""))
        return found
