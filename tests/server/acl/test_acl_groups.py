"""Permissions for consumer groups: %G~pattern, which Redis does not have."""

from __future__ import annotations

import re

import pytest

from penstock.server.command_table import ROWS
from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.raw_redis import Refusal

REFUSED = Refusal("NOPERM No permissions to access a consumer group")


def shop(rules: str, level: str = "8.6") -> tuple[ManualClient, ManualClient]:
    server = ServerBench(level)
    admin = server.connect()
    for stream in ("orders", "payments"):
        for group in ("billing", "audit"):
            admin.reply(f"XGROUP CREATE {stream} {group} 0 MKSTREAM")
    admin.tell("ACL", "SETUSER", "u", "on", ">pw", *rules.split(";"))
    assert admin.replies() == ["OK"]
    client = server.connect()
    client.reply("AUTH u pw")
    return admin, client


COMMANDS = [
    "XREADGROUP GROUP {} c COUNT 1 STREAMS orders >",
    "XREADGROUP COUNT 1 GROUP {} GROUP STREAMS orders >",
    "XACK orders {} 1-1",
    "XACKDEL orders {} IDS 1 1-1",
    "XCLAIM orders {} c 0 1-1",
    "XAUTOCLAIM orders {} c 0 0",
    "XPENDING orders {}",
    "XGROUP CREATECONSUMER orders {} c",
    "XGROUP DELCONSUMER orders {} c",
    "XGROUP SETID orders {} 0",
    "XGROUP DESTROY orders {}",
    "XGROUP CREATE orders {} 0",
    "XINFO CONSUMERS orders {}",
    "PENSTOCK TAKE 3 orders dead delayed {} c 1000 3 1 ANY",
    "PENSTOCK TAKE 4 orders dead delayed owner {} c 1000 3 1 ANY",
    "PENSTOCK ADOPT 3 orders dead owner {} c 1000 3 0-0 10",
    "PENSTOCK RENEW 1 orders {} c 1000",
    "PENSTOCK RENEW 2 orders owner {} c 1000",
    "PENSTOCK SETTLE 2 orders dead {} c ACK 1-1 1",
    "PENSTOCK SETTLE 3 orders dead other {} c ACK 1-1 1",
    "PENSTOCK REAP 1 orders {} 0",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_only_the_groups_of_the_rule_may_be_used(command: str) -> None:
    admin, client = shop("~*;+@all;%G~bill*")
    if "CREATE " in command:
        admin.reply("XGROUP DESTROY orders billing")
    assert client.reply(command.format("audit")) == REFUSED
    assert client.reply(command.format("billing")) != REFUSED


def test_every_command_that_names_a_group_says_where() -> None:
    names_it = re.compile(r"(?<![\w-])group(?![\w-])")
    missing = [
        row.name
        for row in ROWS
        if names_it.search(row.syntax) and not row.group_at and row.find_group is None
    ]
    assert missing == []
    assert sum(bool(row.group_at or row.find_group) for row in ROWS) >= 18


READS = [
    "PENSTOCK TAKE 3 orders dead delayed billing c 1000 3 1 ANY",
    "PENSTOCK ADOPT 3 orders dead owner billing c 1000 3 0-0 10",
    "PENSTOCK SETTLE 2 orders dead billing c DEAD 1-1 1 reason trace",
]


@pytest.mark.parametrize("command", READS)
def test_a_command_that_returns_or_copies_entries_needs_the_right_to_read(command: str) -> None:
    refused = Refusal("NOPERM No permissions to access a key")
    _, writer = shop("%W~*;+@all")
    assert writer.reply(command) == refused
    _, worker = shop("%RW~orders;%W~dead;%RW~delayed;%R~owner;+@all;%G~billing")
    assert worker.reply(command) != refused


def test_without_a_rule_all_groups_are_allowed() -> None:
    _, client = shop("~*;+@all")
    assert client.reply("XACK orders audit 1-1") == 0


def test_a_selector_joins_a_stream_and_a_group() -> None:
    _, client = shop("~orders;%G~billing;+@all;(~payments %G~audit +@stream)")
    assert client.reply("XACK orders billing 1-1") == 0
    assert client.reply("XACK payments audit 1-1") == 0
    assert client.reply("XACK orders audit 1-1") == REFUSED
    assert client.reply("XACK payments billing 1-1") == REFUSED
    assert client.reply("XADD payments * k v") != REFUSED


def test_a_user_who_may_do_everything_else_is_limited_too() -> None:
    _, client = shop("allkeys;allchannels;+@all;%G~billing")
    assert client.session.permissions is not None
    assert client.reply("XACK orders audit 1-1") == REFUSED
    assert client.reply("XLEN orders") == 0


def test_rules_about_groups_can_be_taken_back() -> None:
    admin, client = shop("~*;+@all;%G~billing;%G~audit")
    assert client.reply("XACK orders audit 1-1") == 0
    admin.reply("ACL SETUSER u resetgroups")
    assert client.reply("XACK orders audit 1-1") == REFUSED
    admin.reply("ACL SETUSER u allgroups")
    assert client.reply("XACK orders audit 1-1") == 0


def test_the_rules_are_shown_where_groups_are_limited() -> None:
    admin, _ = shop("~*;+@all;%g~bill*;(~x resetgroups)")
    line = admin.reply("ACL LIST")[1]
    assert line.endswith(b"~* resetchannels %G~bill* +@all (~x resetchannels resetgroups -@all)")
    about = admin.reply("ACL GETUSER u")
    assert about[about.index(b"groups") + 1] == b"%G~bill*"
    assert b"groups" not in admin.reply("ACL GETUSER default")


def test_dryrun_and_the_log_name_the_group() -> None:
    admin, client = shop("~*;+@all;%G~billing", "7.0")
    text = b"This user has no permissions to access the 'audit' consumer group"
    assert admin.reply("ACL DRYRUN u XACK orders audit 1-1") == text
    assert client.reply("XACK orders audit 1-1") == Refusal(
        "NOPERM this user has no permissions to access the consumer group used as an argument"
    )
    [entry] = admin.reply("ACL LOG")
    assert entry[2:10] == [
        b"reason",
        b"group",
        b"context",
        b"toplevel",
        b"object",
        b"audit",
        b"username",
        b"u",
    ]
