"""SUBSCRIBE, PSUBSCRIBE, PUBLISH, SSUBSCRIBE, SPUBLISH, PUBSUB.

A subscription is confirmed by one push per name, which also has the client's number of subscriptions.
Subscriptions to shard channels are counted separately.
"""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.core.glob import Glob
from penstock.engine.channels import Channels, Listeners
from penstock.engine.commands.help import help_of
from penstock.engine.table import ALL_KEYS, NO_KEYS, ONE_KEY, Command, Flags
from penstock.errors import CommandError, unknown_subcommand
from penstock.reply import NO_REPLY, NoReply, Push, Status
from penstock.server.session.session import Session
from penstock.server.session.states import SUBSCRIBED
from penstock.wire.command import encode_command

Names = dict[bytes, None]

# Unsubscribing from nothing gets a reply as well.
_NOTHING: tuple[bytes | None, ...] = (None,)


def _channels(session: Session) -> Channels:
    return session.server.engine.context.channels


def _say(session: Session, kind: bytes, name: bytes | None) -> None:
    if kind in (b"ssubscribe", b"sunsubscribe"):
        count = len(session.shard_channels)
    else:
        count = len(session.channels) + len(session.patterns)
    session.push(Push([kind, name, count]))


def _note(session: Session) -> None:
    """Set or clear SUBSCRIBED."""
    if session.channels or session.patterns or session.shard_channels:
        session.state |= SUBSCRIBED
    else:
        session.state &= ~SUBSCRIBED


def subscribe(session: Session, frame: Frame) -> NoReply:
    """Subscribe to channels."""
    return _listen(session, frame, session.channels, _channels(session).by_name, b"subscribe")


def psubscribe(session: Session, frame: Frame) -> NoReply:
    """Subscribe to all channels that match patterns."""
    return _listen(session, frame, session.patterns, _channels(session).by_pattern, b"psubscribe")


def unsubscribe(session: Session, frame: Frame) -> NoReply:
    """Unsubscribe from channels, or from all."""
    return _leave(session, frame, session.channels, _channels(session).by_name, b"unsubscribe")


def punsubscribe(session: Session, frame: Frame) -> NoReply:
    """Unsubscribe from patterns, or from all."""
    return _leave(session, frame, session.patterns, _channels(session).by_pattern, b"punsubscribe")


def ssubscribe(session: Session, frame: Frame) -> NoReply:
    """Subscribe to shard channels. Unlike SUBSCRIBE, it is refused in a transaction, as in Redis."""
    if not session.server.engine.context.may_block:
        raise CommandError("SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
    table = _channels(session).by_shard_name
    return _listen(session, frame, session.shard_channels, table, b"ssubscribe")


def sunsubscribe(session: Session, frame: Frame) -> NoReply:
    """Unsubscribe from shard channels, or from all."""
    table = _channels(session).by_shard_name
    return _leave(session, frame, session.shard_channels, table, b"sunsubscribe")


def _listen(session: Session, frame: Frame, own: Names, table: Listeners, word: bytes) -> NoReply:
    """Register each name with the session and the server, and confirm it."""
    for name in _named(frame):
        own[name] = None
        Channels.add(table, name, session)
        _say(session, word, name)
    _note(session)
    return NO_REPLY


def _leave(session: Session, frame: Frame, own: Names, table: Listeners, word: bytes) -> NoReply:
    """Undo _listen for the given names, or for all. Without any there is one confirmation."""
    for name in _named(frame) or [*own] or _NOTHING:
        if name is not None:
            own.pop(name, None)
            Channels.drop(table, name, session)
        _say(session, word, name)
    _note(session)
    return NO_REPLY


def _named(frame: Frame) -> list[bytes]:
    return [frame.piece(index) for index in range(1, frame.count)]


def publish(session: Session, frame: Frame) -> int:
    """Send a message to all subscribers, here and on replicas; reply with the number of those here."""
    channel, text = frame.piece(1), frame.piece(2)
    session.server.replication.feed.say(encode_command(b"PUBLISH", channel, text), is_urgent=False)
    return _channels(session).publish(channel, text)


def spublish(session: Session, frame: Frame) -> int:
    """Send a message to all subscribers of a shard channel, as publish does."""
    channel, text = frame.piece(1), frame.piece(2)
    session.server.replication.feed.say(encode_command(b"SPUBLISH", channel, text), is_urgent=False)
    return _channels(session).publish_in_shard(channel, text)


def pubsub_channels(session: Session, frame: Frame) -> list[bytes]:
    """The channels with subscribers."""
    return _names_of(frame, _channels(session).by_name)


def pubsub_shardchannels(session: Session, frame: Frame) -> list[bytes]:
    """The shard channels with subscribers."""
    return _names_of(frame, _channels(session).by_shard_name)


def _names_of(frame: Frame, table: Listeners) -> list[bytes]:
    if frame.count > 3:
        raise unknown_subcommand("PUBSUB", frame.piece(1))
    names = list(table)
    if frame.count == 3:
        glob = Glob(frame.piece(2))
        names = [name for name in names if glob.matches(name)]
    return names


def pubsub_numsub(session: Session, frame: Frame) -> list[bytes | int]:
    """The number of subscribers per channel, without patterns."""
    return _counts_of(frame, _channels(session).by_name)


def pubsub_shardnumsub(session: Session, frame: Frame) -> list[bytes | int]:
    """The number of subscribers per shard channel."""
    return _counts_of(frame, _channels(session).by_shard_name)


def _counts_of(frame: Frame, table: Listeners) -> list[bytes | int]:
    reply: list[bytes | int] = []
    for index in range(2, frame.count):
        name = frame.piece(index)
        reply += [name, len(table.get(name, ()))]
    return reply


def pubsub_numpat(session: Session, frame: Frame) -> int:
    """The number of patterns with subscribers."""
    return len(_channels(session).by_pattern)


def pubsub_help(session: Session, frame: Frame) -> list[Status]:
    """The subcommands of PUBSUB."""
    return help_of("PUBSUB", _HELP)


_HELP = [
    "CHANNELS [<pattern>]",
    "    List the channels with subscribers.",
    "NUMPAT",
    "    Count the patterns with subscribers.",
    "NUMSUB [<channel> ...]",
    "    Count the subscribers of these channels.",
    "SHARDCHANNELS [<pattern>]",
    "    List the shard channels with subscribers.",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Count the subscribers of these shard channels.",
]

_LISTEN = Flags.PUBSUB | Flags.NO_SCRIPT | Flags.LOADING | Flags.STALE | Flags.WHILE_SUBSCRIBED
_ASK = Flags.PUBSUB | Flags.LOADING | Flags.STALE

COMMANDS = (
    Command(
        "SUBSCRIBE",
        subscribe,
        -2,
        _LISTEN,
        NO_KEYS,
        "Subscribe to channels.",
        syntax="channel [channel ...]",
        since="2.0.0",
        complexity="O(channels)",
        group="pubsub",
        in_session=True,
        channels=ALL_KEYS,
    ),
    Command(
        "UNSUBSCRIBE",
        unsubscribe,
        -1,
        _LISTEN,
        NO_KEYS,
        "Unsubscribe from channels.",
        syntax="[channel [channel ...]]",
        since="2.0.0",
        complexity="O(channels)",
        group="pubsub",
        in_session=True,
    ),
    Command(
        "PSUBSCRIBE",
        psubscribe,
        -2,
        _LISTEN,
        NO_KEYS,
        "Subscribe to channels that match patterns.",
        syntax="pattern [pattern ...]",
        since="2.0.0",
        complexity="O(patterns)",
        group="pubsub",
        in_session=True,
        patterns=ALL_KEYS,
    ),
    Command(
        "PUNSUBSCRIBE",
        punsubscribe,
        -1,
        _LISTEN,
        NO_KEYS,
        "Unsubscribe from patterns.",
        syntax="[pattern [pattern ...]]",
        since="2.0.0",
        complexity="O(patterns)",
        group="pubsub",
        in_session=True,
    ),
    Command(
        "PUBLISH",
        publish,
        3,
        _ASK | Flags.FAST | Flags.PAUSED_WITH_WRITES,
        NO_KEYS,
        "Send a message to a channel.",
        syntax="channel message",
        since="2.0.0",
        complexity="O(listeners of the channel + patterns)",
        group="pubsub",
        in_session=True,
        channels=ONE_KEY,
    ),
    Command(
        "SSUBSCRIBE",
        ssubscribe,
        -2,
        _LISTEN,
        ALL_KEYS,
        "Subscribe to shard channels.",
        syntax="shardchannel [shardchannel ...]",
        since="7.0.0",
        complexity="O(channels)",
        group="pubsub",
        in_session=True,
        access=("not_key",),
        channels=ALL_KEYS,
    ),
    Command(
        "SUNSUBSCRIBE",
        sunsubscribe,
        -1,
        _LISTEN,
        ALL_KEYS,
        "Unsubscribe from shard channels.",
        syntax="[shardchannel [shardchannel ...]]",
        since="7.0.0",
        complexity="O(channels)",
        group="pubsub",
        in_session=True,
        access=("not_key",),
    ),
    Command(
        "SPUBLISH",
        spublish,
        3,
        _ASK | Flags.FAST | Flags.PAUSED_WITH_WRITES,
        ONE_KEY,
        "Send a message to a shard channel.",
        syntax="shardchannel message",
        since="7.0.0",
        complexity="O(listeners of the channel)",
        group="pubsub",
        in_session=True,
        access=("not_key",),
        channels=ONE_KEY,
    ),
    Command(
        "PUBSUB CHANNELS",
        pubsub_channels,
        -2,
        _ASK,
        NO_KEYS,
        "List the channels with subscribers.",
        syntax="[pattern]",
        since="2.8.0",
        complexity="O(channels)",
        group="pubsub",
        in_session=True,
    ),
    Command(
        "PUBSUB NUMSUB",
        pubsub_numsub,
        -2,
        _ASK,
        NO_KEYS,
        "Count the subscribers of channels.",
        syntax="[channel [channel ...]]",
        since="2.8.0",
        complexity="O(channels named)",
        group="pubsub",
        in_session=True,
    ),
    Command(
        "PUBSUB NUMPAT",
        pubsub_numpat,
        2,
        _ASK,
        NO_KEYS,
        "Count the patterns with subscribers.",
        since="2.8.0",
        group="pubsub",
        in_session=True,
    ),
    Command(
        "PUBSUB SHARDCHANNELS",
        pubsub_shardchannels,
        -2,
        _ASK,
        NO_KEYS,
        "List the shard channels with subscribers.",
        syntax="[pattern]",
        since="7.0.0",
        complexity="O(channels)",
        group="pubsub",
        in_session=True,
    ),
    Command(
        "PUBSUB SHARDNUMSUB",
        pubsub_shardnumsub,
        -2,
        _ASK,
        NO_KEYS,
        "Count the subscribers of shard channels.",
        syntax="[shardchannel [shardchannel ...]]",
        since="7.0.0",
        complexity="O(channels named)",
        group="pubsub",
        in_session=True,
    ),
    Command(
        "PUBSUB HELP",
        pubsub_help,
        2,
        Flags.LOADING | Flags.STALE,
        NO_KEYS,
        "Show the subcommands of PUBSUB.",
        since="6.2.0",
        group="pubsub",
        in_session=True,
    ),
)
