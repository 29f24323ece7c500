"""COMMAND describes every command as Redis does."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.frame import Frame
from penstock.engine.arguments import int_at
from penstock.engine.table import NO_KEYS, Command, Flags
from penstock.errors import CommandError
from penstock.server.command_table import ROWS
from penstock.server.commands import introspection
from penstock.server.session.session import Session
from tests.support.engine.engines import SYNTAX
from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.raw_redis import Members, RawRedis, Refusal
from tests.support.servers.redis_server import RedisServer

# What differs from Redis 7.0, and why.
DIFFERENCES: dict[str, str] = {}
# allow_busy is for what may run while a script keeps the server busy; here nothing can.
NO_FLAGS_OF_OURS = {"allow_busy"}


def nothing(_session: Session, _frame: Frame) -> None:
    """Runs nothing."""


def counted_keys(frame: Frame) -> list[int]:
    count = int_at(frame, 2)
    if count < 1:
        raise CommandError("no keys")
    return list(range(3, 3 + count))


def small_table() -> ManualClient:
    """A server with a few made-up commands beside COMMAND itself."""
    rows = [
        Command(
            "TAKE",
            nothing,
            -4,
            Flags.WRITE | Flags.BLOCKING,
            NO_KEYS,
            "Take.",
            syntax="timeout numkeys key [key ...] [COUNT count]",
            since="7.0.0",
            group="list",
            find_keys=counted_keys,
        ),
        Command("BOX PUT", nothing, 4, Flags.WRITE, (2, 2, 1), "Put.", syntax="key value"),
        Command("BOX HELP", nothing, 2, Flags.FAST, NO_KEYS, "Help.", since="0.9.0"),
        Command("PAIRS", nothing, -3, Flags.READ, (1, -1, 2), "Pairs.", group="string"),
        Command("BARE", nothing, 1, Flags.ADMIN, NO_KEYS, "Nothing."),
    ]
    return ServerBench(rows=[*rows, *introspection.COMMANDS]).connect()


def test_a_command_is_described_by_its_row() -> None:
    [row] = small_table().reply("COMMAND INFO pairs")
    spec = [b"flags", ["RO", "access"]]
    spec += [b"begin_search", [b"type", b"index", b"spec", [b"index", 1]]]
    find = [b"lastkey", -1, b"keystep", 2, b"limit", 0]
    spec += [b"find_keys", [b"type", b"range", b"spec", find]]
    categories = ["@read", "@string", "@slow"]
    assert row == [b"pairs", -3, ["readonly"], 1, -1, 2, categories, [], [spec], []]


def test_keys_at_varying_positions_are_described_as_far_as_possible() -> None:
    [row] = small_table().reply("COMMAND INFO take")
    assert row[2] == ["write", "blocking", "movablekeys"]
    spec = dict(zip(row[8][0][::2], row[8][0][1::2], strict=True))
    assert spec[b"begin_search"] == [b"type", b"index", b"spec", [b"index", 2]]
    keynum = [b"keynumidx", 0, b"firstkey", 1, b"keystep", 1]
    assert spec[b"find_keys"] == [b"type", b"keynum", b"spec", keynum]


def test_a_container_is_built_from_its_subcommands() -> None:
    client = small_table()
    [row] = client.reply("COMMAND INFO box")
    assert row[:7] == [b"box", -2, [], 0, 0, 0, ["@slow"]]
    assert [subcommand[0] for subcommand in row[9]] == [b"box|put", b"box|help"]
    assert client.reply("COMMAND INFO Box|Help nosuch box|nosuch") == [row[9][1], None, None]


def test_in_resp3_flags_are_a_set() -> None:
    client = small_table()
    client.session.output.resp3 = True
    [row] = client.reply("COMMAND INFO bare")
    assert row[2] == Members(["admin"])
    assert row[6] == Members(["@admin", "@slow", "@dangerous"])
    assert row[7:] == [Members([]), Members([]), Members([])]


def test_without_names_all_commands_are_described() -> None:
    client = small_table()
    names = [b"take", b"box", b"pairs", b"bare", b"command"]
    assert [row[0] for row in client.reply("COMMAND")] == names
    assert client.reply("COMMAND INFO") == client.reply("COMMAND")
    assert client.reply("COMMAND COUNT") == 5


def test_names_can_be_filtered() -> None:
    client = small_table()
    names = client.reply("COMMAND LIST")
    assert names[:5] == [b"take", b"box", b"box|put", b"box|help", b"pairs"]
    assert client.reply("COMMAND LIST FILTERBY PATTERN B*") == [
        b"box",
        b"box|put",
        b"box|help",
        b"bare",
    ]
    assert client.reply("COMMAND LIST FILTERBY ACLCAT string") == [b"pairs"]
    assert client.reply("COMMAND LIST FILTERBY ACLCAT @string") == []
    assert client.reply("COMMAND LIST FILTERBY MODULE any") == []


def test_docs_have_summary_and_arguments() -> None:
    client = small_table()
    client.session.output.resp3 = True
    docs = client.reply("COMMAND DOCS TAKE nosuch")
    assert docs == {
        b"take": {
            b"summary": b"Take.",
            b"since": b"7.0.0",
            b"group": b"list",
            b"complexity": b"O(1)",
            b"arguments": [
                {b"name": b"timeout", b"type": b"integer"},
                {b"name": b"numkeys", b"type": b"integer"},
                {
                    b"name": b"key",
                    b"type": b"key",
                    b"key_spec_index": 0,
                    b"flags": Members(["multiple"]),
                },
                {
                    b"name": b"count",
                    b"type": b"integer",
                    b"token": b"COUNT",
                    b"flags": Members(["optional"]),
                },
            ],
        }
    }


def test_the_docs_of_a_container_hold_those_of_its_subcommands() -> None:
    client = small_table()
    client.session.output.resp3 = True
    docs = client.reply("COMMAND DOCS box")[b"box"]
    assert docs[b"since"] == b"0.9.0"
    assert list(docs[b"subcommands"]) == [b"box|put", b"box|help"]
    assert client.reply("COMMAND DOCS box|put") == {b"box|put": docs[b"subcommands"][b"box|put"]}


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("TAKE 0 2 a b COUNT 3", [b"a", b"b"]),
        ("box put k v", [b"k"]),
        ("PAIRS a 1 b 2", [b"a", b"b"]),
    ],
)
def test_keys_are_found_in_a_command(words: str, keys: list[bytes]) -> None:
    assert small_table().reply(f"COMMAND GETKEYS {words}") == keys


def test_keys_are_returned_with_their_access_flags() -> None:
    client = small_table()
    assert client.reply("COMMAND GETKEYSANDFLAGS PAIRS a 1") == [[b"a", ["RO", "access"]]]
    wanted = [[b"k", ["RW", "update"]]]
    assert client.reply("COMMAND GETKEYSANDFLAGS BOX PUT k v") == wanted


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("GETKEYS NOSUCH a", "ERR Invalid command specified"),
        ("GETKEYS BOX NOSUCH", "ERR Invalid command specified"),
        ("GETKEYS BARE a", "ERR The command has no key arguments"),
        ("GETKEYS BOX PUT", "ERR Invalid number of arguments specified for command"),
        ("GETKEYS TAKE 0 0 x", "ERR Invalid arguments specified for command"),
        ("GETKEYS BARE", "ERR wrong number of arguments for 'command|getkeys' command"),
        ("LIST FILTERBY", SYNTAX),
        ("LIST FILTERBY NOSUCH x", SYNTAX),
        ("LIST FILTERBY PATTERN x y", SYNTAX),
        ("NOSUCH", "ERR unknown subcommand 'NOSUCH'. Try COMMAND HELP."),
    ],
)
def test_invalid_arguments_are_refused(words: str, text: str) -> None:
    assert small_table().reply(f"COMMAND {words}") == Refusal(text)


def test_a_key_position_beyond_the_command_is_refused() -> None:
    text = "ERR Invalid arguments specified for command"
    assert small_table().reply("COMMAND GETKEYS TAKE 0 9 x") == Refusal(text)


def test_every_row_has_a_summary_and_a_version() -> None:
    for row in ROWS:
        assert row.summary.endswith("."), row.name
        assert len(row.since.split(".")) == 3, row.name


def described(row: list[Any]) -> dict[str, Any]:
    name, arity, flags, first, last, step, categories = row[:7]
    return {
        "name": name,
        "arity": arity,
        "flags": set(flags) - NO_FLAGS_OF_OURS,
        "keys": (first, last, step),
        "categories": categories,
    }


def test_every_command_is_described_as_in_redis(redis_server: RedisServer) -> None:
    ours = ServerBench("7.0").connect()
    names = ours.reply("COMMAND LIST")
    with RawRedis(redis_server.port) as client:
        [theirs] = client.ask([[b"COMMAND", b"INFO", *names]])
    differing = {}
    for mine, their in zip(ours.reply(b"COMMAND", b"INFO", *names), theirs, strict=True):
        name = mine[0].decode()
        # Skip commands that this Redis does not have.
        if their is not None and described(mine) != described(their) and name not in DIFFERENCES:
            differing[name] = (described(mine), described(their))
    assert differing == {}


def test_commands_are_as_old_as_in_redis(redis_server: RedisServer) -> None:
    ours = ServerBench("7.0").connect()
    ours.session.output.resp3 = True
    mine = ours.reply("COMMAND DOCS")
    with RawRedis(redis_server.port) as client:
        _, theirs = client.ask([[b"HELLO", b"3"], [b"COMMAND", b"DOCS", *mine]])
    for name in mine.keys() & theirs.keys():
        pairs = [(mine[name], theirs[name])]
        there = theirs[name].get(b"subcommands", {})
        pairs += [
            (sub, there[n]) for n, sub in mine[name].get(b"subcommands", {}).items() if n in there
        ]
        for my, their in pairs:
            if b"subcommands" not in my:
                assert (my[b"since"], my[b"group"]) == (their[b"since"], their[b"group"]), name
