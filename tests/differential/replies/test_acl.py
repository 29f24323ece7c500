"""ACL commands reply as a live Redis, and the rows have its categories and key flags."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from penstock.engine import compat
from penstock.server.acl.foreign_commands import FOREIGN, is_foreign
from penstock.server.command_catalogue import CATEGORIES, categories_of, shown_name
from penstock.server.command_table import ROWS
from tests.support.servers.connections import ServerBench
from tests.support.servers.programs import BY_LEVEL
from tests.support.servers.raw_redis import RawRedis

SESSION = """
ACL LIST
ACL GETUSER default
ACL SETUSER u
ACL GETUSER u
ACL SETUSER u on >pw ~a* %R~b* &ch* +get (+set ~x* ) (+@all ~y)
ACL GETUSER u
ACL SETUSER u resetkeys %R~q %W~q %RW~r %w~s
ACL GETUSER u
ACL SETUSER v %R
ACL SETUSER v %
ACL SETUSER v %X~a
ACL SETUSER v %RR~a
ACL SETUSER v %rw~*
ACL SETUSER v ~*
ACL SETUSER v ~b
ACL SETUSER v &*
ACL SETUSER v &b
ACL SETUSER v +nope
ACL SETUSER v +@nope
ACL SETUSER v -nope
ACL SETUSER v +xgroup|nope
ACL SETUSER v +xgroup|
ACL SETUSER v +get|
ACL SETUSER v +nope|x
ACL SETUSER v +xgroup|create|x
ACL SETUSER v -get|x
ACL SETUSER v #abc
ACL SETUSER v #30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4
ACL SETUSER v !30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4
ACL SETUSER v !30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4
ACL SETUSER v <abc
ACL SETUSER v !abc
ACL SETUSER v bogus
ACL SETUSER v (bogus)
ACL SETUSER v (bogus
ACL SETUSER v "(~a b)"
ACL SETUSER v "(~a" "b)"
ACL SETUSER v "(~a" "+get)"
ACL SETUSER v "(~a" "(+get)"
ACL SETUSER v ""
ACL SETUSER v resetkeys "~a b"
ACL SETUSER v resetchannels "&a b"
ACL SETUSER v ">a b"
ACL SETUSER "a b" on
ACL SETUSER "" on
ACL GETUSER v
ACL DELUSER default
ACL DELUSER nobody u u
ACL WHOAMI
ACL USERS
ACL CAT
ACL CAT nope
ACL CAT a b
ACL GENPASS 0
ACL GENPASS 4097
ACL GENPASS x
ACL GENPASS 1 2
ACL SAVE
ACL LOAD
ACL DRYRUN nobody get a
ACL DRYRUN v nope a
ACL DRYRUN v get
ACL DRYRUN v get a
ACL SETUSER v resetkeys resetchannels clearselectors +@all -@dangerous
ACL DRYRUN v get a
ACL DRYRUN v publish a b
ACL DRYRUN v psubscribe a b
ACL DRYRUN v keys a
ACL DRYRUN v config get a
ACL DRYRUN v auth x
ACL DRYRUN v hello
ACL DRYRUN default keys *
ACL SETUSER v -@all +select|0 +select|A
ACL DRYRUN v select 0
ACL DRYRUN v select a
ACL DRYRUN v select 1
ACL LOG
ACL LOG nope
ACL LOG -1
ACL LOG RESET
ACL LOG 1 2
ACL NOPE
ACL
ACL GETUSER nope
ACL SETUSER v reset
ACL LIST
ACL SETUSER v nopass
ACL GETUSER v
ACL SETUSER v >x
ACL GETUSER v
ACL SETUSER v resetpass skip-sanitize-payload
ACL LIST
AUTH x
AUTH nobody x
HELLO 2 AUTH nobody x
AUTH v x
CLIENT KILL USER nobody
COMMAND GETKEYSANDFLAGS SET a b
COMMAND GETKEYSANDFLAGS SET a b get
COMMAND GETKEYSANDFLAGS LMOVE a b LEFT LEFT
COMMAND GETKEYSANDFLAGS XREADGROUP GROUP g c STREAMS a b 1 2
"""


@pytest.mark.parametrize("level", ["7.0", "8.6"])
def test_acl_replies_are_those_of_redis(port: int, level: str) -> None:
    ours = ServerBench(level).connect()
    with RawRedis(port) as redis:
        for line in SESSION.strip().split("\n"):
            words = [word.encode() for word in shlex.split(line)]
            [theirs] = redis.ask([words])
            assert ours.reply(*words) == theirs, line


@pytest.mark.parametrize("level", ["8.6"])
def test_the_rules_about_commands_are_shown_as_in_redis(port: int, level: str) -> None:
    ours = ServerBench(level).connect()
    changes = [
        "+get -set +@stream -xadd +xgroup|create",
        "+xgroup -xgroup|create +select|0 +select|1",
        "-select",
        "+CONFIG|GET -@ALL +@Read AllKeys +GET +get -Get",
        "+Xgroup|Create -xgroup +select|A +select|a",
        "+@all -@write +xadd",
        "+HSet -sadd +script|kill +eval -cluster|info +zadd -zadd",
    ]
    with RawRedis(port) as redis:
        for change in changes:
            words = [b"ACL", b"SETUSER", b"u", *change.encode().split()]
            assert ours.reply(*words) == redis.ask([words])[0] == "OK"
            [theirs] = redis.ask([[b"ACL", b"LIST"]])
            assert ours.reply("ACL LIST") == theirs, change


@pytest.mark.parametrize("level", ["8.6"])
def test_the_commands_that_only_redis_has_are_known_to_rules(port: int, level: str) -> None:
    ours = set(ServerBench(level).connect().reply("COMMAND LIST"))
    with RawRedis(port) as redis:
        [theirs] = redis.ask([[b"COMMAND", b"LIST"]])
    theirs = {name.decode().lower() for name in theirs}
    missing = theirs - {name.decode() for name in ours}
    assert {name for name in missing if not is_foreign(name)} == set()
    assert set() == FOREIGN - theirs


@pytest.mark.parametrize("level", BY_LEVEL)
def test_rows_have_the_categories_and_key_flags_of_redis(port: int, level: str) -> None:
    with RawRedis(port) as redis:
        for row in ROWS:
            name = shown_name(row)
            [[info]] = redis.ask([[b"COMMAND", b"INFO", name.encode()]])
            if not isinstance(info, list) or (row.name == "WAIT" and level != "7.0"):
                continue  # WAIT is in @blocking from 7.2 on; penstock's never blocks
            assert compat.level(level).knows(row.since), name
            assert set(info[6]) == {"@" + category for category in categories_of(row)}, name
            if row.find_keys is not None or row.keys[0]:
                assert [_flags(spec) for spec in info[8]] == [
                    _words(flags) for flags in row.access
                ], name


def _flags(spec: list[Any]) -> set[str]:
    return set(dict(zip(spec[::2], spec[1::2], strict=True))[b"flags"])


def _words(access: str) -> set[str]:
    return set(access.split())


def test_a_category_has_the_commands_of_redis(port: int) -> None:
    ours = ServerBench("7.0").connect()
    with RawRedis(port) as redis:
        [listed] = redis.ask([[b"COMMAND", b"LIST"]])
        known = {name for name in listed if name in set(ours.reply("COMMAND LIST"))}
        for category in CATEGORIES:
            [theirs] = redis.ask([[b"ACL", b"CAT", category.encode()]])
            mine = set(ours.reply(f"ACL CAT {category}"))
            assert mine & known == set(theirs) & known, category


def test_acl_help_has_the_syntax_lines_of_redis(port: int) -> None:
    ours = ServerBench("7.0").connect().reply("ACL HELP")
    with RawRedis(port) as redis:
        [theirs] = redis.ask([[b"ACL", b"HELP"]])
    assert len(ours) == len(theirs)
    for mine, their in zip(ours, theirs, strict=True):
        assert mine == their or (mine.startswith("    ") and their.startswith("    "))
