"""A server without sockets whose machine can lose power: real sessions, real log, a disk in memory.

    server = PowerCycledServer(clock, Policy.ALWAYS, "7.0", NodeLimits())
    server.send(["XADD", "s", "*", "k", "v"])     -> [Answer(0, b"1000-0")]
    server.stall()                                the disk stops answering fsync
    server.send(["XADD", "s", "*", "k", "w"])     -> []: the reply waits for the disk
    server.crash()                                power cut; the second entry is gone
    server.sync(), server.restart()

Each command comes from a client of its own, which stays connected until it has its reply. The server is a
ServerBench with a Store on a FakeDisk; its Turn and Commit decide when a reply may leave.

    always      each command is followed by a sync, unless the disk is stalled
    everysec    the disk syncs only when `sync` is called

A crash keeps what was synced and nothing else: no unsynced byte, no unsynced file name.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from penstock.core.stream import NodeLimits
from penstock.engine.clock import ManualClock
from penstock.persist.aof.commit import Policy
from penstock.persist.layout import Layout
from penstock.persist.rows import DATA_ROWS
from penstock.persist.snapshot import SnapshotOptions
from penstock.persist.store import Store
from tests.support.disk.fake_disk import Bytes, FakeDisk, Names, Outcome
from tests.support.servers.connections import ManualClient, ServerBench, encoded

LAYOUT = Layout("/data")
WORST = Outcome(Bytes.NONE, Names.NONE)


@dataclass(frozen=True)
class Answer:
    """A reply, and the number of the command that it answers."""

    number: int
    reply: Any


class PowerCycledServer:
    """See above. Each start makes a new `engine`, with the node limits of the last one."""

    def __init__(
        self, clock: ManualClock, policy: Policy, compat_version: str, limits: NodeLimits
    ) -> None:
        self._clock = clock
        self._policy = policy
        self._compat_version = compat_version
        self._disk = FakeDisk()
        self._sent = 0
        self._start(limits)

    def _start(self, limits: NodeLimits) -> None:
        self._bench = ServerBench(self._compat_version, clock=self._clock)
        self.engine = self._bench.engine
        self.engine.limits.bytes_max = limits.bytes_max
        self.engine.limits.entries_max = limits.entries_max
        self._syncs = self._policy is Policy.ALWAYS
        self._store = Store(self._disk, LAYOUT, self.engine, DATA_ROWS)
        self._store.lock()
        recovery = self._store.recovery(load_truncated=True)
        recovered = recovery.with_log()
        self.engine.adopt(recovery.engine)
        self._store.begin_log(recovered, self._policy, SnapshotOptions())
        self._bench.server.turn.commit = self._store.commit
        self._waiting: dict[int, ManualClient] = {}

    # --- Commands ----------------------------------------------------------------------------------

    def send(self, words: list[str]) -> list[Answer]:
        """Send a command from a new client, number 0, 1, ...; return all replies that arrive."""
        client = self._bench.connect()
        self._waiting[self._sent] = client
        self._sent += 1
        client.put(encoded(*words))
        self._bench.loop.run()
        if self._syncs:
            self._sync()
        return self._answers()

    @property
    def last_number(self) -> int:
        return self._sent - 1

    def _answers(self) -> list[Answer]:
        found = []
        for number, client in list(self._waiting.items()):
            for reply in client.replies():
                found.append(Answer(number, reply))
                del self._waiting[number]
                client.vanish()
        return found

    # --- The disk ----------------------------------------------------------------------------------

    def stall(self) -> None:
        """Let the disk answer no sync from now on."""
        self._syncs = False

    def sync(self) -> list[Answer]:
        """Sync everything; with `always`, each following command too. Return the replies that were held."""
        self._syncs = self._policy is Policy.ALWAYS
        self._sync()
        return self._answers()

    def _sync(self) -> None:
        assert self._store.commit is not None
        self._store.commit.sync()
        self._bench.server.turn.release()
        self._bench.loop.run()

    # --- Ends and starts ---------------------------------------------------------------------------

    def crash(self) -> tuple[list[Answer], list[int]]:
        """Cut the power and start again. Return no replies, and the commands that never get one."""
        lost = list(self._waiting)
        self._disk = self._disk.after_cut(WORST, random.Random(0))
        self._start(self.engine.limits)
        return [], lost

    def restart(self) -> tuple[list[Answer], list[int]]:
        """Stop in good order and start again. Return the last replies, and the commands without one."""
        self._sync()
        answers, lost = self._answers(), list(self._waiting)
        self._store.close()
        self._start(self.engine.limits)
        return answers, lost
