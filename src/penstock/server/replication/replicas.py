"""The replicas that are connected to this server.

handshake    it has sent REPLCONF, but not PSYNC yet
wait         it needs a snapshot, and none has begun
transfer     a snapshot is on its way; the stream since then is kept for it
settle       it has the snapshot, and loads it; nothing may be sent before its first ack
online       it gets the stream
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

from penstock.persist.rdb.writer import VERSION_MIN
from penstock.server.log import LOG
from penstock.server.session.states import CLOSING, REPLICA

if TYPE_CHECKING:
    from penstock.server.server import Server
    from penstock.server.session.session import Session


class State(Enum):
    """How far a replica is."""

    HANDSHAKE = "handshake"
    WAIT = "wait"
    TRANSFER = "transfer"
    SETTLE = "settle"
    ONLINE = "online"


SHOWN = {State.WAIT: "wait_bgsave", State.ONLINE: "online"}
"""What INFO shows; all other states are send_bulk."""


class Replica:
    """One replica.

    acked, synced   the offsets that it has applied and has on disk
    lacks_base      it has a log that could not keep writes yet: it says that nothing is on disk
    """

    __slots__ = (
        "acked",
        "acked_ms",
        "announced_ip",
        "announced_port",
        "can_continue_renamed",
        "can_take_marked",
        "has_foreign",
        "is_penstock",
        "kept",
        "kept_bytes",
        "lacks_base",
        "rdb_version",
        "reads_newer",
        "session",
        "since_ms",
        "state",
        "synced",
        "taken_bytes",
    )

    def __init__(self, session: Session) -> None:
        self.session = session
        self.state = State.HANDSHAKE
        self.announced_ip = ""
        self.announced_port = 0
        self.can_take_marked = (
            False  # capa eof: a snapshot of unknown length, with a mark at its end
        )
        self.can_continue_renamed = False  # capa psync2: +CONTINUE with another id
        self.is_penstock = False
        self.has_foreign = False  # among its own replicas
        self.rdb_version = VERSION_MIN
        self.reads_newer = False  # perhaps newer ones too: Redis 8, which announces none
        self.acked = 0
        self.synced = 0
        self.lacks_base = False
        self.acked_ms = 0
        self.since_ms = 0  # in this state
        self.taken_bytes = 0  # of its snapshot, by the socket; owned by full_sync.py
        self.kept: deque[bytes] = deque()
        self.kept_bytes = 0

    @property
    def address(self) -> tuple[str, int]:
        """Where clients reach it, as far as it has said so."""
        host, _, port = self.session.info.address.rpartition(":")
        return self.announced_ip or host.strip("[]"), self.announced_port or int(port)

    @property
    def needs_names_apart(self) -> bool:
        """Whether the names of producers must not be part of their XADD (names_apart.py)."""
        return self.has_foreign or not self.is_penstock

    @property
    def is_counted(self) -> bool:
        """Whether it has sent PSYNC."""
        return self.state is not State.HANDSHAKE

    @property
    def is_online(self) -> bool:
        """Whether it gets the stream."""
        return self.state is State.ONLINE

    def enter(self, state: State) -> None:
        """Change the state."""
        self.state = state
        self.session.state |= REPLICA
        self.since_ms = self.session.server.steady_ms()
        if state is State.ONLINE:
            kept, self.kept = self.kept, deque()
            self.kept_bytes = 0
            for piece in kept:
                self.write(piece)

    def send(self, data: bytes) -> None:
        """Give it bytes of the stream, now or when it is online."""
        if self.state is State.ONLINE:
            self.write(data)
        elif self.state in (State.TRANSFER, State.SETTLE):
            self.kept.append(data)
            self.kept_bytes += len(data)
            self.session.check_output_limit()

    def write(self, data: bytes) -> None:
        """Send bytes, past the replies that wait for the disk or for replicas."""
        session = self.session
        if session.link is None or session.state & CLOSING:
            return
        session.server.bytes_out += len(data)
        session.through_loop = True
        session.link.write(data)
        if session.slow:
            session.check_output_limit()


class Replicas:
    """All of them: of, forget, send, drop_all. Counted: online, acked_by, synced_by."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._by_session: dict[Session, Replica] = {}

    def of(self, session: Session) -> Replica:
        """The replica of a session; a new one if there is none."""
        found = self._by_session.get(session)
        if found is None:
            found = self._by_session[session] = Replica(session)
        return found

    def find_or_none(self, session: Session) -> Replica | None:
        """The replica of a session that has sent PSYNC."""
        found = self._by_session.get(session)
        return None if found is None or not found.is_counted else found

    def kept_bytes(self, session: Session) -> int:
        """How many bytes of the stream are kept for a session until it has its snapshot."""
        found = self._by_session.get(session)
        return 0 if found is None else found.kept_bytes

    def all(self) -> list[Replica]:
        """Those that have sent PSYNC."""
        return [replica for replica in self._by_session.values() if replica.is_counted]

    def online(self) -> list[Replica]:
        """Those that get the stream."""
        return [replica for replica in self._by_session.values() if replica.is_online]

    def forget(self, session: Session) -> bool:
        """A connection is gone; True if it was that of a replica."""
        replica = self._by_session.pop(session, None)
        if replica is None or not replica.is_counted:
            return False
        LOG.info("replica %s:%d is gone", *replica.address)
        return True

    def send(self, data: bytes) -> None:
        """Give bytes of the stream to all."""
        for replica in list(self._by_session.values()):
            try:
                replica.send(data)
            except Exception:  # noqa: BLE001  the others must get the bytes
                LOG.exception("cannot send to the replica %s:%d", *replica.address)
                replica.session.kill()

    def drop_all(self, but: Session | None = None) -> None:
        """Disconnect all, except for one: they come back and ask again."""
        for session in list(self._by_session):
            if session is not but:
                session.kill()

    def good(self, lag_s_max: int) -> int:
        """How many are online with an ack of the last seconds."""
        now_ms = self._server.steady_ms()
        return sum(now_ms - one.acked_ms <= lag_s_max * 1000 for one in self.online())

    def acked_by(self, offset: int) -> int:
        """How many have applied this offset."""
        return sum(one.acked >= offset for one in self.online())

    def synced_by(self, offset: int) -> int:
        """How many have this offset on disk."""
        return sum(one.synced >= offset for one in self.online())
