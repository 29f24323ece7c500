"""The replies of COMMAND and its subcommands, built from the command table.

A row has Redis's flags as bits and its chapter of the manual as `group`. As in Redis, the categories follow
from both. A container has no row of its own (except COMMAND): its entry is built from its subcommands.

    container      XGROUP            name xgroup, arity -2, no keys, subcommands xgroup|create ...
    subcommand     XGROUP CREATE     name xgroup|create
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.engine.table import Command, Flags
from penstock.reply import Members, Pairs, Status
from penstock.server.command_syntax import Argument, arguments_of

# In Redis's order. Flags that are missing here (DANGEROUS, NOT_QUEUED, ...) do not exist in Redis.
FLAG_NAMES = {
    Flags.WRITE: "write",
    Flags.READ: "readonly",
    Flags.DENY_OOM: "denyoom",
    Flags.ADMIN: "admin",
    Flags.PUBSUB: "pubsub",
    Flags.NO_SCRIPT: "noscript",
    Flags.BLOCKING: "blocking",
    Flags.LOADING: "loading",
    Flags.STALE: "stale",
    Flags.SKIP_MONITOR: "skip_monitor",
    Flags.SKIP_SLOWLOG: "skip_slowlog",
    Flags.FAST: "fast",
    Flags.NO_AUTH: "no_auth",
    Flags.NO_MULTI: "no_multi",
    Flags.NO_ASYNC_LOADING: "no_async_loading",
}

# In Redis's order.
CATEGORIES = (
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
)

_CATEGORY_OF_FLAG = {
    Flags.KEYSPACE: "keyspace",
    Flags.READ: "read",
    Flags.WRITE: "write",
    Flags.PUBSUB: "pubsub",
    Flags.ADMIN: "admin",
    Flags.BLOCKING: "blocking",
    Flags.DANGEROUS: "dangerous",
    Flags.CONNECTION: "connection",
}
_CATEGORY_OF_GROUP = {
    "list": "list",
    "string": "string",
    "stream": "stream",
    "connection": "connection",
    "transactions": "transaction",
    "scripting": "scripting",
}
# In the admin category but without the admin flag: every client library asks for the role.
_ADMIN_BY_CATEGORY = {"ROLE", "LASTSAVE"}


def shown_name(row: Command) -> str:
    """The name as Redis shows it: xgroup|create."""
    return row.name.lower().replace(" ", "|")


def flags_of(row: Command) -> list[str]:
    """The names of a row's flags."""
    names = [name for flag, name in FLAG_NAMES.items() if row.flags & flag]
    if row.find_keys is not None:
        names.append("movablekeys")
    return names


def categories_of(row: Command) -> list[str]:
    """The categories of a row, without the @."""
    found = {name for flag, name in _CATEGORY_OF_FLAG.items() if row.flags & flag}
    found.add("fast" if row.flags & Flags.FAST else "slow")
    if row.group in _CATEGORY_OF_GROUP:
        found.add(_CATEGORY_OF_GROUP[row.group])
    if row.name in _ADMIN_BY_CATEGORY:
        found.add("admin")
    if "admin" in found:
        found.add("dangerous")
    return [name for name in CATEGORIES if name in found]


def flags_reply(access: str) -> Members:
    """The key flags of a row as a reply."""
    return Members([Status(name) for name in access.split()])


def key_specs_of(row: Command) -> list[Pairs]:
    """The key specifications of a row, for clients that look for keys themselves."""
    first, last, step = row.keys
    if row.find_keys is not None:
        search, find = _movable_spec(row)
        return [_key_spec(row.access[0], search, find)]
    if first == 0:
        return []
    if len(row.access) > 1:
        return [
            _key_spec(access, _spec("index", [(b"index", first + number)]), _range(0, 1, 0))
            for number, access in enumerate(row.access)
        ]
    search = _spec("index", [(b"index", first)])
    find = _range(last - first if last >= 0 else last, step, 0)
    return [_key_spec(row.access[0], search, find)]


def _key_spec(access: str, search: Pairs, find: Pairs) -> Pairs:
    return Pairs([(b"flags", flags_reply(access)), (b"begin_search", search), (b"find_keys", find)])


def _movable_spec(row: Command) -> tuple[Pairs, Pairs]:
    """Keys after the word STREAMS or after their number; other rules cannot be expressed."""
    words = row.syntax.split()
    if "STREAMS" in words:
        # A consumer may be called STREAMS: search after the mandatory arguments.
        start = 4 if words[0] == "GROUP" else 1
        search = _spec("keyword", [(b"keyword", b"STREAMS"), (b"startfrom", start)])
        return search, _range(-1, 1, 2)
    if "numkeys" in words:
        counted = [(b"keynumidx", 0), (b"firstkey", 1), (b"keystep", 1)]
        place = len(row.name.split()) + words.index("numkeys")
        return _spec("index", [(b"index", place)]), _spec("keynum", counted)
    return _spec("unknown", []), _spec("unknown", [])


def _spec(kind: str, pairs: list[tuple[bytes, Any]]) -> Pairs:
    return Pairs([(b"type", kind.encode()), (b"spec", Pairs(pairs))])


def _range(last: int, step: int, limit: int) -> Pairs:
    return _spec("range", [(b"lastkey", last), (b"keystep", step), (b"limit", limit)])


class Catalogue:
    """The rows of a table, grouped by container."""

    def __init__(self, rows: Iterable[Command]) -> None:
        self._rows = {shown_name(row): row for row in rows}
        self._subcommands: dict[str, list[Command]] = {}
        self.names: list[str] = []  # commands and containers, without subcommands
        for name, row in self._rows.items():
            container, _, word = name.partition("|")
            if word:
                self._subcommands.setdefault(container, []).append(row)
            if container not in self.names:
                self.names.append(container)

    def all_names(self) -> Iterator[str]:
        """Every command, each followed by its subcommands."""
        for name in self.names:
            yield from self.covered(name)

    def knows(self, name: str) -> bool:
        """Tell whether a command, container or subcommand exists."""
        return name in self._rows or name in self._subcommands

    def is_container(self, name: str) -> bool:
        """Tell whether a name has subcommands."""
        return name in self._subcommands

    def covered(self, name: str) -> list[str]:
        """A known name, followed by its subcommands."""
        return [name, *(shown_name(row) for row in self._subcommands.get(name, ()))]

    def in_category(self, category: str) -> list[str]:
        """The names of a category, containers and subcommands included."""
        return [name for name in self.all_names() if category in self.categories(name)]

    def categories(self, name: str) -> list[str]:
        """The categories of a known name."""
        row = self._rows.get(name)
        return ["slow"] if row is None else categories_of(row)

    def info(self, name: str) -> list[Any]:
        """The reply of COMMAND INFO for a known name."""
        row = self._rows.get(name)
        subcommands = [self.info(shown_name(sub)) for sub in self._subcommands.get(name, ())]
        categories = [Status("@" + category) for category in self.categories(name)]
        if row is None:
            about: list[Any] = [name.encode(), -2, Members([]), 0, 0, 0]
            specs: list[Pairs] = []
        else:
            flags = Members([Status(flag) for flag in flags_of(row)])
            about = [name.encode(), row.arity, flags, *row.keys]
            specs = key_specs_of(row)
        return [*about, Members(categories), Members([]), Members(specs), Members(subcommands)]

    def docs(self, name: str) -> Pairs:
        """The reply of COMMAND DOCS for a known name."""
        row = self._rows.get(name)
        subcommands = self._subcommands.get(name, [])
        if row is None:
            pairs = _about_container(name, subcommands)
        else:
            pairs = [
                (b"summary", row.summary.encode()),
                (b"since", row.since.encode()),
                (b"group", (row.group or "generic").encode()),
                (b"complexity", row.complexity.encode()),
            ]
            arguments = arguments_of(row.syntax)
            if arguments:
                has_keys = row.find_keys is not None or row.keys[0] > 0
                pairs.append((b"arguments", [_argument(item, has_keys) for item in arguments]))
        if subcommands:
            found = [(shown_name(s).encode(), self.docs(shown_name(s))) for s in subcommands]
            pairs.append((b"subcommands", Pairs(found)))
        return Pairs(pairs)


def _about_container(name: str, subcommands: list[Command]) -> list[tuple[bytes, Any]]:
    since = min(subcommands, key=lambda row: [int(part) for part in row.since.split(".")]).since
    return [
        (b"summary", f"A container for {name.upper()} commands.".encode()),
        (b"since", since.encode()),
        (b"group", (subcommands[0].group or "generic").encode()),
        (b"complexity", b"Depends on subcommand."),
    ]


def _argument(argument: Argument, has_keys: bool) -> Pairs:
    pairs: list[tuple[bytes, Any]] = [
        (b"name", argument.name.encode()),
        (b"type", argument.type.encode()),
    ]
    if argument.type == "key" and has_keys:
        pairs.append((b"key_spec_index", 0))
    if argument.token is not None:
        pairs.append((b"token", argument.token.encode()))
    flags = []
    if argument.optional:
        flags.append(Status("optional"))
    if argument.multiple:
        flags.append(Status("multiple"))
    if flags:
        pairs.append((b"flags", Members(flags)))
    if argument.arguments:
        pairs.append((b"arguments", [_argument(item, has_keys) for item in argument.arguments]))
    return Pairs(pairs)
