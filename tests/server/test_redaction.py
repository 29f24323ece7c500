"""Passwords never appear in SLOWLOG, MONITOR or errors about settings."""

from __future__ import annotations

import pytest

from penstock.core.frame import Frame
from penstock.server.config.directives import VOCABULARY, default_config
from penstock.server.stats.redaction import SECRET_DIRECTIVES, public_setting, public_words
from tests.support.servers.connections import ServerBench, encoded

HIDDEN = "(redacted)"


def frame_of(*words: str) -> Frame:
    frame = Frame()
    for word in words:
        frame.add(word.encode())
    return frame


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("AUTH pw", f"AUTH {HIDDEN}"),
        ("auth joe pw", f"auth {HIDDEN} {HIDDEN}"),
        ("AUTH a b c", f"AUTH {HIDDEN} {HIDDEN} {HIDDEN}"),
        ("HELLO 3 AUTH joe pw SETNAME me", f"HELLO 3 AUTH {HIDDEN} {HIDDEN} SETNAME me"),
        ("HELLO 3 AUTH joe", f"HELLO 3 AUTH {HIDDEN}"),
        ("CONFIG SET requirepass pw", f"CONFIG SET requirepass {HIDDEN}"),
        (
            "config set timeout 5 RequirePass pw MASTERAUTH other hz 10",
            f"config set timeout 5 RequirePass {HIDDEN} MASTERAUTH {HIDDEN} hz 10",
        ),
        ("CONFIG SET requirepass a b", f"CONFIG SET requirepass {HIDDEN} {HIDDEN}"),
        ("CONFIG SET masteruser joe", f"CONFIG SET masteruser {HIDDEN}"),
        ("CONFIG SET tls-key-file-pass pw", f"CONFIG SET tls-key-file-pass {HIDDEN}"),
        ("CONFIG GET requirepass", "CONFIG GET requirepass"),
        ("ACL SETUSER joe on >pw", f"ACL SETUSER {HIDDEN} {HIDDEN} {HIDDEN}"),
        ("ACL WHOAMI", "ACL WHOAMI"),
        ("MIGRATE h 1 k 0 9 COPY AUTH pw", f"MIGRATE h 1 k 0 9 COPY AUTH {HIDDEN}"),
        (
            "MIGRATE h 1 k 0 9 auth2 joe pw KEYS a",
            f"MIGRATE h 1 k 0 9 auth2 {HIDDEN} {HIDDEN} KEYS a",
        ),
        ("XADD requirepass * auth pw", "XADD requirepass * auth pw"),
        ("CONFIG", "CONFIG"),
        ("ACL", "ACL"),
    ],
)
def test_a_command_is_shown_without_its_secrets(command: str, shown: str) -> None:
    assert public_words(frame_of(*command.split())) == [word.encode() for word in shown.split()]


def test_a_shortened_argument_list_is_redacted_as_well() -> None:
    words = frame_of(*["CONFIG", "SET", "requirepass", "pw", "hz", "10"])
    assert public_words(words, 4) == [b"CONFIG", b"SET", b"requirepass", b"(redacted)"]
    assert public_words(words, 3) == [b"CONFIG", b"SET", b"requirepass"]


def test_the_slow_log_does_not_show_a_new_password() -> None:
    bench = ServerBench()
    default_config().attach(bench.server)
    client = bench.connect()
    bench.server.slow_us = 0
    client.send(encoded("CONFIG", "SET", "requirepass", "hunter2"))
    client.send(encoded("MULTI") + encoded("AUTH", "hunter2") + encoded("EXEC"))
    entries = client.reply("SLOWLOG GET 100")
    assert [b"CONFIG", b"SET", b"requirepass", b"(redacted)"] in [entry[3] for entry in entries]
    assert not [word for entry in entries for word in entry[3] if b"hunter2" in word]


@pytest.mark.parametrize(
    ("name", "words", "shown"),
    [
        ("requirepass", ["pw"], f"requirepass {HIDDEN}"),
        ("requirepass", ["two", "words"], f"requirepass {HIDDEN}"),
        ("requirepass", [], "requirepass"),
        ("requirepas", ["pw"], f"requirepas {HIDDEN}"),
        ("reqiurepsas", ["pw"], f"reqiurepsas {HIDDEN}"),
        ("mastrauth", ["pw"], f"mastrauth {HIDDEN}"),
        ("admin-password", ["pw"], f"admin-password {HIDDEN}"),
        ("user", ["default", ">pw"], f"user {HIDDEN}"),
        ("port", ["x", ""], 'port x ""'),
    ],
)
def test_a_setting_is_shown_without_its_secret(name: str, words: list[str], shown: str) -> None:
    assert public_setting(name, words) == shown


def test_no_other_directive_is_hidden() -> None:
    known = {*VOCABULARY.by_name(), *VOCABULARY.ignored, *VOCABULARY.refused}
    hidden = {name for name in known if public_setting(name, ["value"]).endswith(HIDDEN)}
    secrets = {"requirepass", "masterauth", "masteruser"}
    secrets |= {"tls-key-file-pass", "tls-client-key-file-pass"}
    assert hidden & {row.name for row in VOCABULARY.directives} == secrets
    assert hidden >= SECRET_DIRECTIVES & known
