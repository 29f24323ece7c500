"""Sends the same sessions to our server and to a real Redis, and compares all replies and messages.

A few clients on each side, RESP2 and RESP3, take turns with random commands for streams, strings, keys,
lists, transactions and channels. One more client receives all messages and keyspace events. Our server runs
in this process on real connections. Its clock is set from the TIME of Redis, as in test_random_commands, so
that generated ids and expiry times can be compared.

A failure shows its seed. PENSTOCK_SEED=<the part before the slash> repeats it.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from penstock.engine import events
from penstock.server.session.states import BLOCKED
from tests.differential.random.test_random_commands import GAP_MS_MAX, ROUND_COMMANDS, TIME
from tests.differential.random.test_random_key_commands import IN_ANY_ORDER, KeyRound, about
from tests.support.campaign import cases_per_level, levels, seed
from tests.support.engine.engines import STRING_KEY
from tests.support.engine.keyspace_events import EVENT_KINDS
from tests.support.random.key_commands import ALL_KEYS, DATABASES
from tests.support.random.list_commands import LIST_KEYS
from tests.support.random.session_commands import BROKEN, CHANNELS, SessionWorld
from tests.support.random.stream_commands import Words
from tests.support.servers.connections import ServerBench
from tests.support.servers.raw_redis import Members, Push, RawRedis, encode

CLIENTS = 3
BATCH_SIZES = [1, 2, 5, 10, 25]
WAIT_MS_MAX = 10  # no random command blocks for longer
ENDS_OF_MULTI = (b"EXEC", b"DISCARD", b"RESET")
MARK = b"end of the messages"
SUBSCRIPTIONS = [[b"PSUBSCRIBE", b"__keyevent@*__:*"], *([b"SUBSCRIBE", name] for name in CHANNELS)]


@pytest.mark.parametrize("level", levels("8.0", "8.2", "8.6"))
def test_random_sessions_read_the_same_as_with_redis(port: int, level: str) -> None:
    start = seed()
    with RawRedis(port) as control, RawRedis(port) as listener:
        listener.ask(SUBSCRIPTIONS)
        for n in range(cases_per_level(200_000) // ROUND_COMMANDS):
            with SessionRound(port, control, listener, f"{start}/{n}", level) as played:
                played.play()


Batch = list[tuple[Words, bytes, bool]]  # words, bytes, whether in a transaction


def first_commands(world: SessionWorld) -> list[Words]:
    """Commands that empty a server and set it up for a world."""
    settings = [b"stream-node-max-bytes", b"%d" % world.bytes_max]
    settings += [b"stream-node-max-entries", b"%d" % world.entries_max]
    settings += [b"list-max-listpack-size", b"%d" % world.lists.listpack_size]
    settings += [b"notify-keyspace-events", EVENT_KINDS.encode()]
    emptied = [[b"DEBUG", b"SET-ACTIVE-EXPIRE", b"0"], [b"FLUSHALL"], [b"SET", STRING_KEY, b"x"]]
    return [*emptied, [b"CONFIG", b"SET", *settings]]


class Peer:
    """One client, on both sides."""

    def __init__(self, theirs: RawRedis, ours: Any, resp3: bool) -> None:
        self.resp3 = resp3
        self.theirs = theirs
        self.ours = ours
        self.in_multi = False
        self.queued: list[Words] = []

    def will_send(self, words: Words) -> None:
        """Keep track of whether the client is in a transaction."""
        if words == [b"MULTI"]:
            self.in_multi = True
        elif words[0] in ENDS_OF_MULTI:
            self.in_multi = False


class SessionRound(KeyRound):
    """Two empty servers, and a few clients of both."""

    clocks_agree = True

    def __init__(
        self, port: int, control: RawRedis, listener: RawRedis, name: str, level: str
    ) -> None:
        self.port = port
        self.control = control
        self.messages = listener
        self.name = name
        self.world: Any = SessionWorld(random.Random(name), level)
        self.dice = self.world.dice
        self.gap_ms = 0
        self.has_parted = False
        self.sent: list[Words] = []
        self.bench: Any = ServerBench(level)
        self._set_up()
        self.our_listener = self.bench.connect()
        for words in SUBSCRIPTIONS:
            self.our_listener.run(*words)
        self.peers = [self._new_peer() for _ in range(CLIENTS)]

    def _set_up(self) -> None:
        """Empty both servers and give them the same settings."""
        world, engine = self.world, self.bench.engine
        engine.context.keyspace.values[STRING_KEY] = b"x"
        engine.context.event_kinds = events.parse_kinds_or_none(EVENT_KINDS) or 0
        engine.limits.bytes_max = world.bytes_max
        engine.limits.entries_max = world.entries_max
        engine.list_limits.set_listpack_size(world.lists.listpack_size)
        self.control.ask(first_commands(world))
        received(self.messages)

    def _new_peer(self) -> Peer:
        peer = Peer(RawRedis(self.port), self.bench.connect(), self.dice.random() < 0.5)
        if peer.resp3:
            peer.theirs.ask([[b"HELLO", b"3"]])
            peer.ours.run(b"HELLO", b"3")
        return peer

    def __enter__(self) -> SessionRound:
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self.peers:
            peer.theirs.__exit__()

    # --- The play ----------------------------------------------------------------------------------

    def play(self) -> None:
        while len(self.sent) < ROUND_COMMANDS and not self.has_parted:
            at = self.dice.randrange(CLIENTS)
            if self.dice.random() < 0.02:
                self.break_off(at)
            else:
                self.compare_batch(self.peers[at], self._batch(self.peers[at]))
        if not self.has_parted:
            self.look_at_everything()

    def _batch(self, peer: Peer) -> Batch:
        """Commands, their bytes, and whether the client is in a transaction when it sends each."""
        batch: Batch = []
        size = self.dice.choice(BATCH_SIZES)
        while len(batch) < size:
            words = self.world.command(peer.in_multi, peer.resp3)
            if peer.in_multi or not self.clocks_agree:
                words = for_a_transaction(words)
            batch.append((words, self.world.data(words), peer.in_multi))
            peer.will_send(words)
        return batch

    def look_at_everything(self) -> None:
        peer = self.peers[0]
        if peer.in_multi:
            peer.will_send([b"DISCARD"])
            self.compare_batch(peer, [([b"DISCARD"], encode([b"DISCARD"]), True)])
        self.compare_batch(peer, [(words, encode(words), False) for words in self.questions()])

    def questions(self) -> list[Words]:
        """Commands whose replies show all data."""
        asked: list[Words] = []
        for keyspace in self.bench.engine.context.databases[:DATABASES]:
            asked += [[b"SELECT", b"%d" % keyspace.index], [b"DBSIZE"], [b"KEYS", b"*"]]
            asked += [words for key in ALL_KEYS for words in about(keyspace, key)]
            for key in LIST_KEYS:
                asked += [[b"LRANGE", key, b"0", b"-1"], [b"PEXPIRETIME", key], [b"TYPE", key]]
        return asked

    def break_off(self, at: int) -> None:
        """Let a client send bytes that make the server close the connection."""
        peer, data = self.peers[at], self.dice.choice(BROKEN)
        self.sent.append([b"(no command)", data])
        theirs = last_words(peer.theirs, data)
        ours = self.our_last_words(peer, data)
        # If two patterns match one message, a hash table decides which comes first.
        if sorted(ours.splitlines()) != sorted(theirs.splitlines()):
            self.fail(f" broken bytes: ours {ours!r}, theirs {theirs!r}")
        self.peers[at] = self._new_peer()

    def our_last_words(self, peer: Peer, data: bytes) -> bytes:
        ours: bytes = peer.ours.send(data)
        assert peer.ours.closed, self.story(" broken bytes: our connection is still open")
        return ours

    # --- One batch ---------------------------------------------------------------------------------

    def compare_batch(self, peer: Peer, batch: Batch) -> None:
        # In a transaction TIME would be queued, so another connection asks for it.
        time = self._time() if batch[0][2] else 0
        groups, end = ask(peer.theirs, peer, batch)
        moments = [moment for moment, _ in groups] + [end or self._time()]
        in_order = True
        for n, ((words, data, _), (moment, theirs)) in enumerate(zip(batch, groups, strict=True)):
            known = moment or time
            following = next((later for later in moments[n + 1 :] if later), known)
            self.gap_ms = max(self.gap_ms, following - known)
            assert self.gap_ms < GAP_MS_MAX
            time = known
            self.sent.append([b"%d:" % self.peers.index(peer), *words])
            self.bench.clock.at_ms = self.time_of(words, theirs[-1] if theirs else None, known)
            self.compare_items(peer, words, self._ours(peer, data), theirs)
            in_order = in_order and words[0].upper() not in IN_ANY_ORDER
            if words == [b"RESET"]:
                peer.ours.run(b"HELLO", b"3" if peer.resp3 else b"2")
            if self.has_parted:
                return
        in_order = in_order and not any(words == [b"EXEC"] for words, _, _ in batch)
        self.compare_received(in_order)

    def _time(self) -> int:
        [time] = self.control.ask([TIME])
        return _ms(time)

    def _ours(self, peer: Peer, data: bytes) -> list[Any]:
        cut = self.dice.randrange(len(data)) if self.dice.random() < 0.1 else 0
        peer.ours.put(data[:cut])
        peer.ours.put(data[cut:])
        self.bench.loop.run()
        for _ in range(WAIT_MS_MAX):
            if not peer.ours.session.state & BLOCKED:
                break
            self.bench.advance(1)  # a blocked client times out
        found: list[Any] = peer.ours.replies()
        return found

    # --- Comparing ---------------------------------------------------------------------------------

    def compare_items(self, peer: Peer, words: Words, ours: list[Any], theirs: list[Any]) -> None:
        if _is_subscription(words) and len(words) == 1:
            ours, theirs = _unsubscribed(ours), _unsubscribed(theirs)
        ours, theirs = _with_any_list(ours), _with_any_list(theirs)
        if len(ours) != len(theirs):
            self.fail(f": ours {ours!r}, theirs {theirs!r}")
        for one, other in zip(_ordered(ours), _ordered(theirs), strict=True):
            if isinstance(other, Push):
                if one != other:
                    self.fail(f" a message: ours {one!r}, theirs {other!r}")
                continue
            if words == [b"EXEC"] and isinstance(one, list) and isinstance(other, list):
                if not len(one) == len(other) == len(peer.queued):
                    self.fail(f": ours {one!r}, theirs {other!r}, queued {peer.queued!r}")
                for queued, half, other_half in zip(peer.queued, one, other, strict=True):
                    self.compare_reply(queued, half, other_half)
            else:
                self.compare_reply(words, one, other)
            self._follow(peer, words, other)

    def _follow(self, peer: Peer, words: Words, theirs: Any) -> None:
        if theirs == "QUEUED":
            peer.queued.append(words)
        elif words[0] in ENDS_OF_MULTI:
            peer.queued = []

    def compare_reply(self, words: Words, ours: Any, theirs: Any) -> None:
        if self.parts(words, ours, theirs):
            self.has_parted = True
        if not self.has_parted:
            found = self.difference(words, _flat(ours), _flat(theirs))
            if found is not None:
                self.fail(f" {words}{found}")

    def compare_received(self, in_order: bool) -> None:
        ours = self.our_listener.replies()
        self.compare_messages(ours, received(self.messages), in_order)

    def compare_messages(self, ours: list[Any], theirs: list[Any], in_order: bool) -> None:
        if not in_order:
            ours, theirs = sorted(ours), sorted(theirs)
        if ours != theirs:
            self.fail(f" messages: ours {ours!r}, theirs {theirs!r}")

    def time_of(self, words: Words, theirs: Any, before_ms: int) -> int:
        """When a command ran. A generated id shows it, unless it only follows a larger one."""
        moment = super().time_of(words, theirs, before_ms)
        return moment if abs(moment - before_ms) < GAP_MS_MAX else before_ms

    def fail(self, found: str) -> None:
        raise AssertionError(self.story(found))


def last_words(connection: RawRedis, data: bytes) -> bytes:
    """The bytes that a server sends before it closes the connection."""
    connection.socket.sendall(data)
    said = connection.rest()
    connection.__exit__()
    return said


def ask(connection: RawRedis, peer: Peer, batch: Batch) -> tuple[list[tuple[int, list[Any]]], int]:
    """For each command the time before it and all replies and messages; then the time after the last.

    A time is 0 inside a transaction.
    """
    hello = encode([b"HELLO", b"3" if peer.resp3 else b"2"])
    data = b""
    for words, sent, in_multi in batch:
        data += (b"" if in_multi else encode(TIME)) + sent
        data += hello if words == [b"RESET"] else b""
    connection.socket.sendall(data + (b"" if peer.in_multi else encode(TIME)))
    groups: list[tuple[int, list[Any]]] = []
    for words, _, in_multi in batch:
        pushes, moment = ([], 0) if in_multi else _until_time(connection)
        if groups:
            groups[-1][1].extend(pushes)
            pushes = []
        if not _is_subscription(words):
            pushes += _until_reply(connection)
        groups.append((moment, pushes))
        if words == [b"RESET"]:
            connection.read()
    if peer.in_multi:
        return groups, 0
    pushes, end = _until_time(connection)
    groups[-1][1].extend(pushes)
    return groups, end


def _until_reply(connection: RawRedis) -> list[Any]:
    items = [connection.read()]
    while isinstance(items[-1], Push):
        items.append(connection.read())
    return items


def _until_time(connection: RawRedis) -> tuple[list[Any], int]:
    *pushes, time = _until_reply(connection)
    return pushes, _ms(time)


def for_a_transaction(words: Words) -> Words:
    """The command, changed so that it does the same inside a transaction as outside."""
    name = words[0].upper()
    if name == b"XADD":  # Redis reads its clock for each command of a transaction
        return [b"9-*" if word == b"*" else word for word in words]
    if name == b"OBJECT":  # queued commands share the values that they refer to
        return [b"ENCODING" if word.upper() == b"REFCOUNT" else word for word in words]
    return words


def _with_any_list(items: list[Any]) -> list[Any]:
    """The replies with one name for both encodings of a list: Redis changes it only at half of the limit."""
    if b"quicklist" not in repr(items).encode():
        return items
    return [
        type(item)(_with_any_list(item))
        if isinstance(item, list)
        else (b"listpack" if item == b"quicklist" else item)
        for item in items
    ]


def _is_subscription(words: Words) -> bool:
    return words[0].endswith(b"SUBSCRIBE")


def _ms(time: list[bytes]) -> int:
    return int(time[0]) * 1000 + int(time[1]) // 1000


def _ordered(items: list[Any]) -> list[Any]:
    """Items with the pattern messages for one event sorted: Redis stores patterns in a hash table."""
    ordered = []
    for what, run in itertools.groupby(items, _pattern_message_or_none):
        found = list(run)
        ordered += found if what is None else sorted(found, key=repr)
    return ordered


def _pattern_message_or_none(item: Any) -> list[Any] | None:
    is_push = isinstance(item, Push) and item.items[0] == b"pmessage"
    return item.items[2:] if is_push else None


def _unsubscribed(items: list[Any]) -> list[Any]:
    """The replies to UNSUBSCRIBE without names, whose order is that of a hash table: names and counts."""
    ends = [item.items for item in items if item.items[0].endswith(b"unsubscribe")]
    others = [item for item in items if item.items not in ends]
    return [*others, Push([sorted(map(repr, part)) for part in zip(*ends, strict=True)])]


def received(listener: RawRedis) -> list[Any]:
    """All messages and keyspace events so far."""
    listener.send([[b"PING", MARK]])
    found = []
    while (item := listener.read()) != [b"pong", MARK]:
        found.append(item)
    return found


def _flat(reply: Any) -> Any:
    """A reply as nested lists, in which maps, sets and pushes start with a mark."""
    if isinstance(reply, dict):
        return ["%", *(_flat(half) for pair in reply.items() for half in pair)]
    if isinstance(reply, (Members, Push)):
        return [type(reply).__name__, *map(_flat, reply.items)]
    return [_flat(item) for item in reply] if isinstance(reply, list) else reply
