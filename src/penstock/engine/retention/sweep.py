"""Walks over all streams again and again, trims those with a policy, and removes idle consumers.

Every change is an ordinary command (XACK, XTRIM ... MINID, XGROUP DELCONSUMER): it is logged, replicated and
published like one of a client. A step looks at a few keys, or removes a few nodes, and takes well below a
millisecond. The owner calls `step` as often as it likes to give time to this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.core import stream_id
from penstock.core.frame import Frame
from penstock.core.rax.items import items_of
from penstock.core.stream import Stream
from penstock.engine.execute import TABLE, Engine
from penstock.engine.keyspace import Keyspace
from penstock.engine.retention.cut import cut_of
from penstock.engine.retention.idle_groups import IdleGroups, Place
from penstock.engine.retention.policy import Policy, policy_of

KEYS_A_STEP = 64
NODES_A_STEP = 128
ROWS_A_STEP = 128  # pending rows and consumers


class Sweep:
    """The work of retention: begin, step. Settings: policies, consumer_idle_ms (0 for off).

    `is_over`: every stream was looked at since `begin`.
    """

    __slots__ = (
        "_engine",
        "_idle",
        "_seen_places",
        "_steps",
        "consumer_idle_ms",
        "is_over",
        "policies",
        "trimmed_entries",
    )

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._idle = IdleGroups()
        self._seen_places: set[Place] = set()
        self._steps: Iterator[bool] = iter(())
        self.policies: Sequence[Policy] = ()
        self.consumer_idle_ms = 0
        self.is_over = True
        self.trimmed_entries = 0

    def begin(self) -> None:
        """Start at the first key of the first database."""
        self._steps = self._walk()
        self.is_over = False

    def step(self) -> bool:
        """Do a little work; True if something was removed."""
        removed = next(self._steps, None)
        self.is_over = removed is None
        return bool(removed)

    def _walk(self) -> Iterator[bool]:
        """One step after the other; each tells whether something was removed."""
        self._seen_places = set()
        for keyspace in self._engine.context.databases:
            cursor = 0
            while keyspace.values:
                cursor, keys = keyspace.scan(cursor, KEYS_A_STEP)
                yield False
                for key in keys:
                    while self._treat(keyspace, key):
                        yield True
                    yield False
                if cursor == 0:
                    break
        self._idle.keep(self._seen_places)

    def _treat(self, keyspace: Keyspace, key: bytes) -> bool:
        """Remove a little of what is to be removed from a stream; False if there is nothing more."""
        stream = keyspace.values.get(key)
        if not isinstance(stream, Stream):
            return False
        self._engine.context.instant.advance()
        removed = False
        policy = policy_of(self.policies, key)
        if policy is not None:
            removed = self._trim(keyspace, key, stream, policy)
        if self.consumer_idle_ms and self._remove_consumers(keyspace, key, stream):
            removed = True
        return removed

    def _trim(self, keyspace: Keyspace, key: bytes, stream: Stream, policy: Policy) -> bool:
        now_ms = self._engine.context.now_ms()
        place = (keyspace.index, key)
        if policy.idle_group_ms is not None:
            self._seen_places.update((*place, name) for name, _ in items_of(stream.groups))
        cut = cut_of(
            stream,
            policy,
            now_ms,
            NODES_A_STEP,
            lambda name, group: self._idle.idle_ms((*place, name), group, now_ms),
        )
        if cut.min_id is None:
            return False
        if policy.force:
            for name, group in list(items_of(stream.groups)):
                below = cut.min_id.previous()
                rows = group.pending_rows(stream_id.SMALLEST, below, ROWS_A_STEP)
                if rows:
                    self._run(keyspace, b"XACK", key, name, *[row.id.text for row in rows])
                    if len(rows) == ROWS_A_STEP:
                        return True  # the other rows first: none may be left without its entry
        length = stream.length
        self._run(keyspace, b"XTRIM", key, b"MINID", b"=", cut.min_id.text)
        self.trimmed_entries += length - stream.length
        return stream.length < length

    def _remove_consumers(self, keyspace: Keyspace, key: bytes, stream: Stream) -> bool:
        """Remove consumers that have nothing pending and were not seen for long."""
        now_ms = self._engine.context.now_ms()
        gone: list[tuple[bytes, bytes]] = []
        for name, group in items_of(stream.groups):
            for _, consumer in items_of(group.consumers):
                idle_ms = now_ms - consumer.seen_ms
                if consumer.pending.count == 0 and idle_ms >= self.consumer_idle_ms:
                    gone.append((name, consumer.name))
        for name, consumer_name in gone[:ROWS_A_STEP]:
            self._run(keyspace, b"XGROUP", b"DELCONSUMER", key, name, consumer_name)
        return bool(gone)

    def _run(self, keyspace: Keyspace, *words: bytes) -> None:
        """Run a command as a client would."""
        frame = Frame()
        for word in words:
            frame.add(word)
        name = words[0] if words[0] != b"XGROUP" else b" ".join(words[:2])
        context = self._engine.context
        selected = context.keyspace
        context.keyspace = keyspace
        try:
            self._engine.execute(TABLE[name.decode()], frame)
        finally:
            context.keyspace = selected
