"""Random ACL rules mean the same in penstock and in Redis.

Both servers get the same rules for one user. Then ACL DRYRUN is asked about random commands, and some of them
are called by that user. penstock's DRYRUN and its real calls must agree, too.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.engine import compat
from penstock.server.command_table import ROWS
from tests.support.campaign import cases_per_level, levels, seed
from tests.support.random.acl_rules import RandomRules, rows_known_to
from tests.support.servers.connections import ServerBench
from tests.support.servers.raw_redis import RawRedis, Refusal

CALLS = 40  # for each set of rules
SETS = 2500  # of rules: 10^5 commands
# These commands change what the following ones mean, wait, or end the connection or the server.
NOT_CALLED = (
    *("ACL", "AUTH", "BGREWRITEAOF", "BGSAVE", "BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH"),
    *("CLIENT", "CONFIG", "DEBUG", "DISCARD", "EXEC", "FAILOVER", "FLUSHALL", "FLUSHDB", "HELLO"),
    *("MONITOR", "MULTI", "PSUBSCRIBE", "PSYNC", "PUNSUBSCRIBE", "QUIT", "REPLCONF", "REPLICAOF"),
    *("RESET", "SAVE", "SELECT", "SHUTDOWN", "SLAVEOF", "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE"),
    *("SWAPDB", "SYNC", "UNSUBSCRIBE", "WAIT", "WAITAOF"),
)


@pytest.mark.parametrize("level", levels("8.0", "8.2", "8.6"))
def test_random_rules_allow_the_same_commands(port: int, level: str) -> None:
    number = seed()
    dice = random.Random(number)
    ours = ServerBench(level)
    admin, user = ours.connect(), ours.connect()
    with RawRedis(port) as redis, RawRedis(port) as redis_user:
        random_rules = RandomRules(_common_rows(redis, level), dice)
        for client in (admin, redis):
            assert _ask(client, [[b"ACL", b"SETUSER", b"u", b"on", b">pw"]]) == ["OK"]
        for client in (user, redis_user):
            assert _ask(client, [[b"AUTH", b"u", b"pw"]]) == ["OK"]
        for _ in range(cases_per_level(SETS)):
            rules = random_rules.rules()
            asked = [[b"ACL", b"SETUSER", b"u", *rules], [b"ACL", b"GETUSER", b"u"]]
            where = f"PENSTOCK_SEED={number}: {rules}"
            assert _shown(_ask(admin, asked), level) == _shown(_ask(redis, asked), level), where
            calls = [random_rules.call() for _ in range(CALLS)]
            dry = [[b"ACL", b"DRYRUN", b"u", *call] for call in calls]
            verdicts = _ask(admin, dry)
            for call, mine, theirs in zip(calls, verdicts, _ask(redis, dry), strict=True):
                assert mine == theirs, f"{where} {call}"
            real = [
                (call, verdict)
                for call, verdict in zip(calls, verdicts, strict=True)
                if call[0].decode() not in NOT_CALLED and not isinstance(verdict, Refusal)
            ]
            answers = _ask(user, [call for call, _ in real])
            theirs = _ask(redis_user, [call for call, _ in real])
            for (call, verdict), mine, their in zip(real, answers, theirs, strict=True):
                assert _is_denied(mine) == (verdict != "OK"), f"{where} {call} {mine}"
                assert _denial_or_none(mine) == _denial_or_none(their), f"{where} {call}"


def _common_rows(redis: RawRedis, level: str) -> list[Any]:
    [names] = redis.ask([[b"COMMAND", b"LIST"]])
    # WAIT is in @blocking from 7.2 on; penstock's never blocks.
    rows = [row for row in ROWS if row.name != "WAIT" or level == "7.0"]
    known = [row for row in rows if compat.level(level).knows(row.since)]
    return rows_known_to({name.decode() for name in names}, known)


def _ask(client: Any, commands: list[list[bytes]]) -> list[Any]:
    if isinstance(client, RawRedis):
        return client.ask(commands)
    return [client.reply(*words) for words in commands]


def _shown(replies: list[Any], level: str) -> list[Any]:
    """Without the texts of the rules about commands at level 7.0, where Redis computes new ones."""
    if level != "7.0" or not isinstance(replies[1], list):
        return replies
    about = replies[1]
    selectors = [rules[2:] for rules in about[-1]]
    return [replies[0], about[:4], about[6:-1], selectors]


def _is_denied(reply: Any) -> bool:
    return isinstance(reply, Refusal) and reply.line.startswith("NOPERM")


def _denial_or_none(reply: Any) -> str | None:
    return reply.line if _is_denied(reply) else None
