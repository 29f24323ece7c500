"""ACL LOG and the counters of INFO; passwords are shown nowhere."""

from __future__ import annotations

import logging

import pytest

from penstock.server.acl.denial_log import OBJECT_BYTES_MAX, DenialLog, Event
from tests.support.servers.connections import ServerBench

EVENT = Event("key", "toplevel", b"k", b"u")


def test_a_repeated_event_is_counted_by_its_entry() -> None:
    log = DenialLog()
    log.note(EVENT, 1000, b"first")
    log.note(Event("key", "toplevel", b"other", b"u"), 2000, b"")
    log.note(EVENT, 61_000, b"last")
    assert [(entry.event.object, entry.count) for entry in log.entries] == [
        (b"k", 2),
        (b"other", 1),
    ]
    newest = log.entries[0]
    assert (newest.id, newest.created_ms, newest.updated_ms) == (0, 1000, 61_000)
    assert newest.client_line == b"last"
    log.note(EVENT, 121_001, b"")
    assert [entry.count for entry in log.entries] == [1, 2, 1]
    assert log.counts == {"key": 4}


def test_a_large_key_is_cut_off() -> None:
    log = DenialLog()
    for _ in range(2):
        log.note(Event("key", "toplevel", b"k" * 5000, b"u"), 0, b"")
    [entry] = log.entries
    assert entry.event.object == b"k" * OBJECT_BYTES_MAX


def test_the_log_has_a_limit() -> None:
    log = DenialLog()
    log.length_max = 2
    for number in range(5):
        log.note(Event("command", "toplevel", b"%d" % number, b"u"), 0, b"")
    assert [entry.event.object for entry in log.entries] == [b"4", b"3"]
    log.clear()
    assert not log.entries


@pytest.mark.parametrize(("level", "fields"), [("7.0", 14), ("7.2", 20)])
def test_failed_logins_and_refused_commands_are_logged(level: str, fields: int) -> None:
    server = ServerBench(level)
    admin = server.connect()
    admin.reply("ACL SETUSER u on >pw ~a +@all -keys")
    client = server.connect()
    client.tell("AUTH nobody x")
    client.tell("AUTH u pw")
    server.advance(1500)
    for command in ("GET b", "KEYS *", "MULTI", "GET c", "KEYS *"):
        client.tell(command)
    entries = [dict(zip(entry[::2], entry[1::2], strict=True)) for entry in admin.reply("ACL LOG")]
    assert [(e[b"reason"], e[b"context"], e[b"object"], e[b"username"]) for e in entries] == [
        (b"command", b"multi", b"keys", b"u"),
        (b"key", b"multi", b"c", b"u"),
        (b"command", b"toplevel", b"keys", b"u"),
        (b"key", b"toplevel", b"b", b"u"),
        (b"auth", b"toplevel", b"AUTH", b"nobody"),
    ]
    assert entries[-1][b"age-seconds"] == b"1.5"
    assert b"user=u" in entries[0][b"client-info"]
    assert len(entries[0]) * 2 == fields
    assert len(admin.reply("ACL LOG 2")) == 2
    assert admin.reply("ACL LOG RESET") == "OK"
    assert admin.reply("ACL LOG") == []
    stats = admin.reply("INFO stats")
    assert (b"acl_access_denied_cmd:2\r\nacl_access_denied_key:2\r\n" in stats) == (level == "7.2")


def test_passwords_are_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = ServerBench()
    server.server.slow_us = 0
    watcher, admin = server.connect(), server.connect()
    watcher.tell("MONITOR")
    commands = [
        "ACL SETUSER u on >hunter2 <hunter2 >hunter2",
        "ACL SETUSER u >hunter2 bogus",
        "AUTH u hunter2",
        "AUTH u hunter2wrong",
        "HELLO 3 AUTH u hunter2",
    ]
    for command in commands:
        admin.tell(command)
    other = server.connect()
    seen = [other.heard(), watcher.heard()]
    seen += [
        other.run(*words.split())
        for words in ("SLOWLOG GET 99", "ACL LOG", "ACL LIST", "CLIENT LIST")
    ]
    assert all(b"hunter2" not in text for text in seen)
    assert "hunter2" not in caplog.text
