"""Whole strings: GET, SET and their combinations. A string is always `bytes`."""

from __future__ import annotations

from penstock.core.frame import Frame
from penstock.engine import events
from penstock.engine.commands.expiry import Moment, change_expiry, remove_now, remove_over
from penstock.engine.context import Context
from penstock.engine.table import ALL_KEYS, KEYS_WITH_VALUES, ONE_KEY, Command, Flags, QuickForm
from penstock.errors import syntax_error, wrong_arity, wrong_type
from penstock.reply import OK, ReplyWriter, Status

_EXPIRY_WORDS = (b"EX", b"PX", b"EXAT", b"PXAT")
_SET_WORDS = 3  # in a SET without options
_OK = b"+OK\r\n"
_STRING = events.STRING


def string_or_none(context: Context, key: bytes) -> bytes | None:
    """The string of a key. Raises: CommandError (WRONGTYPE) for a value of another type."""
    value = context.keyspace.find(key)
    if value is None or isinstance(value, bytes):
        return value
    raise wrong_type()


def read_string_or_none(context: Context, key: bytes) -> bytes | None:
    """As string_or_none, for readers: publishes a missing key."""
    value = string_or_none(context, key)
    if value is None:
        context.missed(key)
    return value


def put_string(context: Context, key: bytes, value: bytes) -> None:
    """Set a key to a string, whatever its value. Its expiry time stays."""
    keyspace = context.keyspace
    replaced = keyspace.find(key)
    keyspace.put(key, value)
    if replaced is None:
        context.created(keyspace, key)
    elif type(replaced) is not bytes:
        context.garbage.discard(replaced)


def _replace(context: Context, key: bytes, value: bytes) -> None:
    """Set a key to a string and remove its expiry time."""
    put_string(context, key, value)
    context.keyspace.clear_expiry(key)
    _tell_set(context, key)


def _tell_set(context: Context, key: bytes) -> None:
    context.changed(key, _STRING, b"set")
    context.touch(key)  # a group's reader may be waiting for the stream that was here


class StringOptions:
    """The options of SET or GETEX. Only one kind of expiry option may be given, but repeatedly."""

    __slots__ = ("expiry", "expiry_at", "get", "only_new", "only_old")

    def __init__(self) -> None:
        self.only_new = False
        self.only_old = False
        self.get = False
        self.expiry = b""  # EX, PX, EXAT, PXAT, KEEPTTL or PERSIST
        self.expiry_at = 0  # the index of its number

    def read(self, frame: Frame, first: int, setting: bool) -> None:
        """Read the words from `first` on. Raises: CommandError."""
        at = first
        while at < frame.count:
            if setting and frame.is_word(at, b"NX") and not self.only_old:
                self.only_new = True
            elif setting and frame.is_word(at, b"XX") and not self.only_new:
                self.only_old = True
            elif setting and frame.is_word(at, b"GET"):
                self.get = True
            elif frame.is_word(at, b"KEEPTTL" if setting else b"PERSIST"):
                self._choose(b"KEEPTTL" if setting else b"PERSIST")
            elif at + 1 < frame.count:
                self._read_expiry(frame, at)
                at += 1
            else:
                raise syntax_error()
            at += 1

    def _read_expiry(self, frame: Frame, at: int) -> None:
        for word in _EXPIRY_WORDS:
            if frame.is_word(at, word):
                self._choose(word)
                self.expiry_at = at + 1
                return
        raise syntax_error()

    def _choose(self, word: bytes) -> None:
        if self.expiry not in (b"", word):
            raise syntax_error()
        self.expiry = word

    def moment_or_none(self, context: Context, frame: Frame, command: str) -> int | None:
        """The expiry time in the options, if there is one. Raises: CommandError for an invalid time."""
        if not self.expiry_at:
            return None
        moment = Moment(command, self.expiry in (b"EX", b"EXAT"), self.expiry in (b"EX", b"PX"))
        return moment.read_positive(context, frame, self.expiry_at)


def get(context: Context, frame: Frame) -> bytes | None:
    """Return a string."""
    return read_string_or_none(context, frame.piece(1))


class QuickGet(QuickForm):
    """GET."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        value = read_string_or_none(context, frame.piece(1))
        if value is None:
            reply.put(None)
        else:
            reply.put_bulk(value)
        return True


class QuickSet(QuickForm):
    """SET without options."""

    __slots__ = ()

    def run(self, context: Context, frame: Frame, reply: ReplyWriter) -> bool:
        if frame.count != _SET_WORDS:
            return False
        _replace(context, frame.piece(1), frame.piece(2))
        reply.put_raw(_OK)
        return True


def set_(context: Context, frame: Frame) -> bytes | Status | None:
    """Set a key to a string, with conditions, an expiry time and the old value if asked for."""
    options = StringOptions()
    options.read(frame, 3, True)
    when_ms = options.moment_or_none(context, frame, "set")
    key = frame.piece(1)
    old = read_string_or_none(context, key) if options.get else None
    is_there = context.keyspace.find(key) is not None
    if is_there if options.only_new else options.only_old and not is_there:
        return old
    put_string(context, key, frame.piece(2))
    if options.expiry == b"":
        context.keyspace.clear_expiry(key)
    _tell_set(context, key)
    if when_ms is not None:
        _set_expiry(context, key, frame.piece(2), when_ms)
    elif frame.count > _SET_WORDS and context.effects is not None:
        # Without conditions and GET: the conditions were met.
        kept = [b"KEEPTTL"] if options.expiry else []
        context.record([b"SET", key, frame.piece(2), *kept])
    return old if options.get else OK


def set_access(frame: Frame) -> str:
    """The key flags of a SET: it reads the old value only with GET."""
    reads = any(frame.is_word(at, b"GET") for at in range(_SET_WORDS, frame.count))
    return "RW access update" if reads else "OW update"


def _set_expiry(context: Context, key: bytes, value: bytes, when_ms: int) -> None:
    """Set the expiry time of a key that was just set."""
    context.keyspace.set_expiry(key, when_ms)
    context.event(events.GENERIC, b"expire", key)
    if context.effects is not None:
        context.record([b"SET", key, value, b"PXAT", b"%d" % when_ms])


def setnx(context: Context, frame: Frame) -> int:
    """Set a key to a string unless it exists."""
    key = frame.piece(1)
    if context.keyspace.find(key) is not None:
        return 0
    _replace(context, key, frame.piece(2))
    return 1


def setex(context: Context, frame: Frame) -> Status:
    """Set a key to a string with an expiry in seconds."""
    return _set_for(context, frame, Moment("setex", True, True))


def psetex(context: Context, frame: Frame) -> Status:
    """Set a key to a string with an expiry in milliseconds."""
    return _set_for(context, frame, Moment("psetex", False, True))


def _set_for(context: Context, frame: Frame, moment: Moment) -> Status:
    when_ms = moment.read_positive(context, frame, 2)
    key = frame.piece(1)
    _replace(context, key, frame.piece(3))
    _set_expiry(context, key, frame.piece(3), when_ms)
    return OK


def getset(context: Context, frame: Frame) -> bytes | None:
    """Set a key to a string; return its old value."""
    key = frame.piece(1)
    old = read_string_or_none(context, key)
    _replace(context, key, frame.piece(2))
    return old


def getdel(context: Context, frame: Frame) -> bytes | None:
    """Remove a string; return its value."""
    key = frame.piece(1)
    old = read_string_or_none(context, key)
    if old is not None:
        remove_now(context, key)
    return old


def getex(context: Context, frame: Frame) -> bytes | None:
    """Return a string and change its expiry time."""
    options = StringOptions()
    options.read(frame, 2, False)
    key = frame.piece(1)
    value = read_string_or_none(context, key)
    if value is None:
        return None
    when_ms = options.moment_or_none(context, frame, "getex")
    if when_ms is None:
        if options.expiry == b"PERSIST" and context.keyspace.clear_expiry(key):
            context.changed(key, events.GENERIC, b"persist")
            if context.effects is not None:
                context.record([b"PERSIST", key])
    elif when_ms <= context.now_ms() and options.expiry in (b"EXAT", b"PXAT"):
        remove_over(context, key)
    else:
        change_expiry(context, key, when_ms)
    return value


def mget(context: Context, frame: Frame) -> list[bytes | None]:
    """The values of several keys; None for a value that is not a string."""
    found: list[bytes | None] = []
    for at in range(1, frame.count):
        key = frame.piece(at)
        value = context.keyspace.find(key)
        if value is None:
            context.missed(key)
        found.append(value if isinstance(value, bytes) else None)
    return found


def mset(context: Context, frame: Frame) -> Status:
    """Set several keys to strings."""
    if not frame.count & 1:
        raise wrong_arity("mset")
    for at in range(1, frame.count, 2):
        _replace(context, frame.piece(at), frame.piece(at + 1))
    return OK


def msetnx(context: Context, frame: Frame) -> int:
    """Set several keys to strings, unless one of them exists."""
    if not frame.count & 1:
        raise wrong_arity("msetnx")
    for at in range(1, frame.count, 2):
        if context.keyspace.find(frame.piece(at)) is not None:
            return 0
    mset(context, frame)
    return 1


_SETS = Flags.WRITE | Flags.DENY_OOM

COMMANDS = (
    Command(
        "GET",
        get,
        2,
        Flags.READ | Flags.FAST,
        ONE_KEY,
        "Read a string.",
        syntax="key",
        group="string",
        quick=QuickGet(),
    ),
    Command(
        "SET",
        set_,
        -3,
        _SETS,
        ONE_KEY,
        "Set a key to a string, replacing any value.",
        syntax="key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds"
        "|PXAT unix-time-milliseconds|KEEPTTL]",
        group="string",
        quick=QuickSet(),
        access=("RW access update variable_flags",),
        find_access=set_access,
    ),
    Command(
        "SETNX",
        setnx,
        3,
        _SETS | Flags.FAST,
        ONE_KEY,
        "Set a key to a string unless it exists.",
        syntax="key value",
        group="string",
        access=("OW insert",),
    ),
    Command(
        "SETEX",
        setex,
        4,
        _SETS,
        ONE_KEY,
        "Set a key to a string with an expiry in seconds.",
        syntax="key seconds value",
        since="2.0.0",
        group="string",
        access=("OW update",),
    ),
    Command(
        "PSETEX",
        psetex,
        4,
        _SETS,
        ONE_KEY,
        "Set a key to a string with an expiry in milliseconds.",
        syntax="key milliseconds value",
        since="2.6.0",
        group="string",
        access=("OW update",),
    ),
    Command(
        "GETSET",
        getset,
        3,
        _SETS | Flags.FAST,
        ONE_KEY,
        "Set a key to a string and return its old value.",
        syntax="key value",
        group="string",
        access=("RW access update",),
    ),
    Command(
        "GETDEL",
        getdel,
        2,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Remove a string and return its value.",
        syntax="key",
        since="6.2.0",
        group="string",
        access=("RW access delete",),
    ),
    Command(
        "GETEX",
        getex,
        -2,
        Flags.WRITE | Flags.FAST,
        ONE_KEY,
        "Read a string and change its expiry time.",
        syntax="key [EX seconds|PX milliseconds|EXAT unix-time-seconds"
        "|PXAT unix-time-milliseconds|PERSIST]",
        since="6.2.0",
        group="string",
        access=("RW access update",),
    ),
    Command(
        "MGET",
        mget,
        -2,
        Flags.READ | Flags.FAST,
        ALL_KEYS,
        "Read several strings.",
        syntax="key [key ...]",
        complexity="O(keys)",
        group="string",
    ),
    Command(
        "MSET",
        mset,
        -3,
        _SETS,
        KEYS_WITH_VALUES,
        "Set several keys to strings.",
        syntax="key value [key value ...]",
        since="1.0.1",
        complexity="O(keys)",
        group="string",
        access=("OW update",),
    ),
    Command(
        "MSETNX",
        msetnx,
        -3,
        _SETS,
        KEYS_WITH_VALUES,
        "Set several keys to strings, unless one of them exists.",
        syntax="key value [key value ...]",
        since="1.0.1",
        complexity="O(keys)",
        group="string",
        access=("OW insert",),
    ),
)
