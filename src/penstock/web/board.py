"""What all pages share."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.web.model.catalogue import StreamCatalogue
from penstock.web.model.history import GroupHistory
from penstock.web.server.asking import ServerClient

PORT_DEFAULT = 8379
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Settings:
    """How the dashboard was started. Raises nothing: the command line has checked it."""

    url: str
    port: int = PORT_DEFAULT
    bind: str = LOOPBACK[0]
    password: str = field(default="", repr=False)
    allow_writes: bool = False
    cluster: bool = False
    proxies: tuple[str, ...] = ()


class Board:
    """One server and what is known of it; made once, before the pages."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.server = ServerClient(settings.url, settings.allow_writes, settings.cluster)
        self.history = GroupHistory()
        self.catalogue = StreamCatalogue(self.server, self.history)
