"""The role of a server: a primary, perhaps with replicas, or the replica of another server.

    REPLICAOF host port   follow a primary: a link is opened, clients can only read
    REPLICAOF NO ONE      become a primary: the history branches off, replicas ask again
    a restart             the log says where the data stands; a primary branches off, a replica continues

A primary keeps a backlog from its first replica on, and drops it when no replica has been there for
repl-backlog-ttl seconds. A replica keeps one from its first sync on.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.execute import Engine
from penstock.errors import CommandError
from penstock.persist.aof.commit import Commit
from penstock.persist.replication_point import ReplicationPoint
from penstock.server.log import LOG
from penstock.server.net.tls import LINK, Tls
from penstock.server.replication.ack_waits import AckWaiters, HeldReplies, not_enough_replicas
from penstock.server.replication.applying import Foreign
from penstock.server.replication.failover import Failover
from penstock.server.replication.feed import GETACK, Feed
from penstock.server.replication.full_sync import FullSync
from penstock.server.replication.own_changes import OwnChanges
from penstock.server.replication.primary_link import PrimaryLink
from penstock.server.replication.replicas import Replica, Replicas, State
from penstock.server.replication.sync_file import remove_leftovers
from penstock.server.session.states import MASTER_DOWN, NO_REPLICAS, READ_ONLY, SUBSCRIBED
from penstock.wire.command import encode_command

if TYPE_CHECKING:
    from penstock.server.server import Server
    from penstock.server.session.session import Session

_LOOK_SECONDS = 0.01
_NOTES_MAX = 1024
_PING = encode_command(b"PING")


@dataclass(slots=True)
class Counts:
    """For INFO: snapshots sent, and requests to continue that were met or refused."""

    full: int = 0
    partial_ok: int = 0
    partial_refused: int = 0


class Replication:
    """One server's replication.

    Role: follow, become_primary, is_primary, link. Parts: feed, replicas, full_sync, held, waiters, failover.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.counts = Counts()
        self.feed = Feed(server)
        self.replicas = Replicas(server)
        self.feed.send = self.replicas.send
        self.feed.on_noted = self._on_noted
        self.full_sync = FullSync(self)
        self.held = HeldReplies(server, self.replicas)
        self.waiters = AckWaiters(self.replicas)
        self.failover = Failover(self)
        self.link: PrimaryLink | None = None
        self._commit: Commit | None = None
        self._notes: deque[tuple[int, int]] = deque()  # positions of the log, and their offsets
        self._synced = 0
        self._owes_ack = False
        self.foreign = Foreign()
        self._pinged_ms = 0
        self.refused_ms: int | None = None  # when a replica was last refused by an empty server
        self._second_ms = 0
        self._last_seen_ms = server.steady_ms()  # of any replica
        self.own_changes = OwnChanges(self)
        self.tls: Tls | None = None  # of links, once this server has opened one by TLS

    def setting(self, name: str) -> Any:
        """The value of a directive."""
        assert self.server.config is not None
        return self.server.config.value(name)

    @property
    def is_primary(self) -> bool:
        """Whether this server follows nobody."""
        return self.link is None

    def own_port(self) -> int:
        """The port that this server announces."""
        announced: int = self.setting("replica-announce-port")
        own = "tls-port" if self.setting("tls-replication") else "port"
        return announced or int(self.setting(own))

    def tls_context_or_none(self) -> ssl.SSLContext | None:
        """The context of a new link; None without tls-replication. Raises: ConfigError."""
        if not self.setting("tls-replication"):
            return None
        if self.tls is None:
            assert self.server.config is not None
            self.tls = Tls(self.server.config, LINK)
        return self.tls.context

    def tls_or_none(self) -> Tls | None:
        """What new links use, if there can be any."""
        if self.tls is not None and not self.setting("tls-replication"):
            self.tls = None
        return self.tls

    def puts_names_apart(self) -> bool:
        """A replica needs the names of producers apart; False: the primary must do that first."""
        link = self.link
        if link is None or not link.is_of_penstock:
            self.feed.put_names_apart()
        elif not self.feed.has_names_apart and link.is_up:
            link.ack(needs_names_apart=True)
        return self.feed.has_names_apart

    def has_keys(self) -> bool:
        """Whether there is any data."""
        return any(keyspace.values for keyspace in self.server.engine.context.databases)

    def point_or_none(self) -> ReplicationPoint | None:
        """The place of the data in its history, for the files that hold it."""
        if self.server.turn.has_effects():
            if not self.server.engine.context.may_block:
                return None  # within a transaction
            self.feed.hand_over()
        return self.feed.point_or_none()

    # --- Start -------------------------------------------------------------------------------------

    def start(self, recovered: ReplicationPoint | None) -> None:
        """The data is loaded: continue its history, and follow the configured primary."""
        assert self.server.durability is not None
        remove_leftovers(self.server.durability.store.disk, self.setting("dir"))
        self.full_sync.remove_leftover()
        if recovered is not None:
            self.feed.adopt(recovered)
        primary = self.setting("replicaof")
        self.own_changes.begin_after_restart(recovered, is_primary=primary is None)
        if recovered is not None:
            if primary is None:
                self.feed.history.branch_off()
            self.feed.begin()
        if primary is not None:
            self.follow(*primary)

    def use_log(self, commit: Commit | None) -> None:
        """A log was started, or ended."""
        self._commit = commit
        self._notes.clear()
        self.feed.use_log(commit)

    # --- The role ----------------------------------------------------------------------------------

    def follow(self, host: str, port: int, fails_over: bool = False) -> None:
        """Become the replica of a server. `fails_over`: that server becomes the primary thereby."""
        was_primary = self.link is None
        if self.link is not None:
            self.link.stop()
        link = PrimaryLink(self, host, port)
        link.fails_over = fails_over
        with self._between_units():
            self.feed.follows = True
            self.link = link
            self._configure((host, port))
            # While the replicas are still counted: what they have acked is safe.
            self.server.turn.refuse_unacked(self.server.sessions.values(), not_enough_replicas())
            self.replicas.drop_all()
            self.full_sync.stop()
            self._let_keys_expire(False)
        self.held.refuse_all(self.server.turn.refuse)
        self.require_acks()
        if was_primary:
            self._end_blocked()
        self.note_link()
        LOG.info("following the primary %s:%d", host, port)
        link.tick()

    def become_primary(self, but: Session | None = None) -> None:
        """Follow nobody any more. `but`: the old primary, which has handed its role over."""
        if self.link is None:
            return
        self.link.stop()
        self.tls = None
        with self._between_units():
            self.link = None
            self.feed.follows = False
            self.feed.history.branch_off()
            self.feed.effects_offset = self.feed.history.offset
            self.own_changes.begin(self.feed.history.offset)
            self.feed.begin()
            self.feed.select_again()
            self._configure(None)
            self.replicas.drop_all(but)
            self._let_keys_expire(True)
        self.held.forget()
        self.require_acks()
        self.note_link()
        if self.server.durability is not None:
            self.server.durability.wait_for_base()
        LOG.info("this server is a primary now, from offset %d on", self.feed.history.offset)

    @contextmanager
    def _between_units(self) -> Iterator[None]:
        """Change the role where the stream may be cut: all effects so far are in it, also within EXEC."""
        engine = self.server.engine
        is_in_exec = not engine.context.may_block
        if is_in_exec:
            engine.end_unit()
        self.feed.hand_over()
        yield
        if is_in_exec:
            engine.begin_unit()

    def _configure(self, primary: tuple[str, int] | None) -> None:
        """Let CONFIG GET and CONFIG REWRITE show the role."""
        assert self.server.config is not None
        self.server.config.values["replicaof"] = primary

    def _let_keys_expire(self, on: bool) -> None:
        """A replica removes no expired key by itself; its primary sends the DEL."""
        self.server.engine.let_expire(on)

    def _end_blocked(self) -> None:
        """End all blocked commands, as Redis does: most would change data, and a replica cannot."""
        error = CommandError(
            "force unblock from blocking operation, instance state changed (master -> replica?)",
            "UNBLOCKED",
        )
        for session in list(self.server.sessions.values()):
            if session.waiter is not None and not session.state & SUBSCRIBED:
                session.waiter.fail(error)
                session.close()

    def note_link(self) -> None:
        """The link's state, or the settings of a replica, have changed: set the server's state."""
        server = self.server
        server.state &= ~(READ_ONLY | MASTER_DOWN)
        if self.link is None:
            return
        if self.setting("replica-read-only"):
            server.state |= READ_ONLY
        if not self.link.is_up and not self.setting("replica-serve-stale-data"):
            server.state |= MASTER_DOWN

    def continue_data(self, name: str) -> None:
        """The primary continues, perhaps under another id: what this server has is part of its history."""
        self.own_changes.end()
        if name and name != self.feed.history.id:
            self.feed.history.rename(name)
            self.replicas.drop_all()
        self.feed.begin()

    def replace_data(
        self, loaded: Engine, point: ReplicationPoint, foreign_keys: set[tuple[int, bytes]]
    ) -> None:
        """A snapshot of the primary is loaded: take its data and its place in the history.

        Raises: OSError if the changes that only this server has cannot be kept; then nothing has changed.
        """
        server = self.server
        self.feed.hand_over()
        self.own_changes.keep()
        self.own_changes.end()
        self.foreign = Foreign(foreign_keys)
        self.replicas.drop_all()
        self.full_sync.stop()
        server.engine.adopt(loaded)
        self._let_keys_expire(False)
        self.feed.adopt(point)
        self.held.forget()
        self._notes.clear()
        self._synced = 0
        if server.durability is not None:
            server.durability.start_over()
        self.feed.begin_again()

    # --- Acks --------------------------------------------------------------------------------------

    def on_ack(self, replica: Replica, offset: int, synced: int | None) -> None:
        """A replica has said what it has applied, and what it has on disk."""
        replica.acked_ms = self.server.steady_ms()
        offset = min(offset, self.feed.history.offset)  # it cannot have more than there is
        replica.acked = max(replica.acked, offset)
        replica.lacks_base = synced == 0 and offset > 0
        if synced is not None:
            replica.synced = max(replica.synced, min(synced, offset))
        if replica.state is State.SETTLE:
            LOG.info("replica %s:%d is online", *replica.address)
            replica.enter(State.ONLINE)
        self.own_changes.note_ack(replica.acked)
        self.check_replicas()
        self.held.release()
        self.waiters.look()
        self.failover.look()

    def require_acks(self) -> None:
        """min-replicas-ack has changed."""
        needed: int = self.setting("min-replicas-ack")
        self.held.needed = needed
        self.held.stale_reads = self.setting("min-replicas-stale-reads")
        is_on = needed > 0 and self.is_primary
        self.feed.asks_acks = self.server.awaits_replicas = is_on
        self.held.release()
        self.server.turn.replicas = self.held if is_on else None
        self.check_replicas()

    def check_replicas(self) -> None:
        """Refuse writes while too few replicas are there."""
        server = self.server
        server.state &= ~NO_REPLICAS
        if not self.is_primary:
            return
        wanted = self.setting("min-replicas-to-write")
        lag = self.setting("min-replicas-max-lag")
        few = bool(wanted and lag and self.replicas.good(lag) < wanted)
        if few or self.held.is_short():
            server.state |= NO_REPLICAS

    def _on_noted(self, offset: int) -> None:
        """The log has taken everything up to an offset."""
        if self._commit is None or not self.feed.follows:
            return
        if len(self._notes) >= _NOTES_MAX:
            self._notes.pop()  # the next one covers it
        self._notes.append((self._commit.position, offset))

    def after_sync(self) -> None:
        """The log was synced: tell a primary that asks."""
        if self._owes_ack and self.link is not None and self.link.is_up:
            self.link.ack()

    def synced_offset_or_none(self) -> int | None:
        """On a replica: the offset that is on disk; None without a log."""
        commit = self._commit
        if commit is None:
            return None
        if not commit.is_based:
            self._owes_ack = True
            return self._synced
        synced = commit.synced
        while self._notes and self._notes[0][0] <= synced:
            self._synced = self._notes.popleft()[1]
        # After a demotion, changes that were taken as a primary may still be on their way to the disk.
        if not self._notes and not commit.journal.size and synced >= commit.position:
            self._synced = self.feed.history.offset
        self._owes_ack = self._synced < self.feed.history.offset
        return self._synced

    # --- Periodic work -----------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due."""
        now_ms = self.server.steady_ms()
        if self.link is not None:
            self.link.tick()
        self.full_sync.start_if_due()
        self.failover.tick()
        if self.held.tick(self.server.turn.refuse):
            self.check_replicas()
        if now_ms - self._second_ms >= 1000:
            self._second_ms = now_ms
            self._tick_second(now_ms)
        period_ms = self.setting("repl-ping-replica-period") * 1000
        if now_ms - self._pinged_ms >= period_ms:
            self._pinged_ms = now_ms
            if self.replicas.online() and not self.failover.is_on:
                self.feed.say(_PING)

    def _tick_second(self, now_ms: int) -> None:
        if self.tls is not None:
            self.tls.look(self.server.engine.context.now_ms() // 1000)
        self.full_sync.keep_alive()
        self.feed.note_offset()
        self.check_replicas()
        timeout_ms = self.setting("repl-timeout") * 1000
        for replica in self.replicas.all():
            heard_ms = max(replica.acked_ms, replica.session.active_ms)
            if replica.state is not State.WAIT and now_ms - heard_ms > timeout_ms:
                replica.session.cut_off(f"this replica has said nothing for {timeout_ms // 1000} s")
        if self.replicas.all() or not self.is_primary:
            self._last_seen_ms = now_ms
            return
        ttl_ms = self.setting("repl-backlog-ttl") * 1000
        if self.feed.backlog is not None and ttl_ms and now_ms - self._last_seen_ms > ttl_ms:
            LOG.info("no replica for %d s: the backlog is freed", ttl_ms // 1000)
            self.feed.end()
            self.own_changes.begin_unknown(self.feed.history.offset)

    def forget(self, session: Session) -> None:
        """A connection is gone, perhaps that of a replica."""
        if self.replicas.forget(session):
            self._last_seen_ms = self.server.steady_ms()
            self.check_replicas()

    async def wait_for_replicas(self, is_over: Callable[[], bool]) -> None:
        """The server stops: let the replicas catch up, for shutdown-timeout at most. Writes are held back.

        `is_over`: nobody waits any more.
        """
        if not self.is_primary or not self.replicas.online():
            return
        timeout_ms = self.setting("shutdown-timeout") * 1000
        self.server.pause.hold_writes("stop")
        self.feed.hand_over()
        offset = self.feed.effects_offset
        deadline_ms = self.server.steady_ms() + timeout_ms
        self.feed.say(GETACK)
        self.feed.hand_over()
        while behind := [one for one in self.replicas.online() if one.acked < offset]:
            if is_over():
                return
            if self.server.steady_ms() >= deadline_ms:
                LOG.warning("%d replicas have not got everything", len(behind))
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        """The server stops."""
        self.full_sync.stop()
        if self.link is not None:
            self.link.stop()
