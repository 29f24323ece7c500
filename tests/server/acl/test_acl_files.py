"""Users in an aclfile and in redis.conf."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.server.acl.user_file import start_users
from penstock.server.config import directives
from penstock.server.config import file as config_file
from penstock.server.config.settings import Config
from tests.support.servers.connections import ManualClient, ServerBench
from tests.support.servers.raw_redis import Refusal

ALICE = "user alice on sanitize-payload #30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4"
DEFAULT = "user default on nopass sanitize-payload ~* &* +@all"


def started_server(config: Config) -> ServerBench:
    """A server with these settings."""
    server = ServerBench()
    config.attach(server.server)
    start_users(server.server.users, config)
    return server


def started(config: Config) -> ManualClient:
    """A client of a server with these settings."""
    return started_server(config).connect()


def configured(folder: Path, text: str) -> Config:
    path = folder / "penstock.conf"
    path.write_text(text)
    config = directives.default_config()
    config.load(config_file.read_file(str(path)))
    config.file = str(path)
    return config


def with_file(folder: Path, text: str) -> ManualClient:
    return started(with_aclfile(folder, text))


def with_aclfile(folder: Path, text: str, more: str = "") -> Config:
    path = folder / "users.acl"
    path.write_text(text)
    return configured(folder, f"aclfile {path}\n{more}")


def users(client: ManualClient) -> list[str]:
    return [line.decode() for line in client.reply("ACL LIST")]


def test_user_lines_of_a_configuration_file(tmp_path: Path) -> None:
    text = "user alice on >pw ~a* (~b +get) +@read\nrequirepass secret\nuser bob off\n"
    client = started(configured(tmp_path, text))
    assert client.reply("AUTH secret") == "OK"
    assert client.reply("ACL USERS") == [b"alice", b"bob", b"default"]
    assert client.reply("AUTH alice pw") == "OK"
    assert client.reply("GET a") is None
    assert client.reply("CONFIG GET user") == Refusal(
        "NOPERM User alice has no permissions to run the 'config|get' command"
    )


def test_a_user_line_for_default_wins_over_requirepass(tmp_path: Path) -> None:
    client = started(configured(tmp_path, "requirepass secret\nuser default on nopass ~* +@all\n"))
    assert client.reply("PING") == "PONG"
    assert client.reply("PUBLISH a b") == Refusal("NOPERM No permissions to access a channel")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("user", "wrong number of arguments"),
        ("user a >hunter2 +nope", "Error in applying operation '+nope': Unknown command"),
        ("user a >hunter2 bogus", "Syntax error"),
        ("user a (+get", "Unmatched parenthesis"),
        ("user default on\nuser default off", "the user is there already"),
    ],
)
def test_a_bad_user_line_names_its_place(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        started(configured(tmp_path, line + "\n"))
    assert str(caught.value).startswith(f"{tmp_path}/penstock.conf:")
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_aclfile_excludes_user_lines(tmp_path: Path) -> None:
    (tmp_path / "users.acl").write_text(DEFAULT + "\n")
    config = configured(tmp_path, f"aclfile {tmp_path}/users.acl\nuser a on\n")
    with pytest.raises(ConfigError, match="at the same time"):
        started(config)


@pytest.mark.parametrize("text", [None, "user a on bogus\n"])
def test_a_server_does_not_start_without_its_users(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "users.acl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=r"aclfile: .*users.acl"):
        started(configured(tmp_path, f"aclfile {path}\n"))


def test_users_are_saved_and_loaded(tmp_path: Path) -> None:
    client = with_file(tmp_path, DEFAULT + "\n")
    path = tmp_path / "users.acl"
    path.chmod(0o640)
    client.reply("ACL SETUSER alice on >pw ~a* &c +@all -get (~x %G~g +xack)")
    assert client.reply("ACL SAVE") == "OK"
    saved = [
        f"{ALICE} ~a* resetchannels &c +@all -get (~x resetchannels %G~g -@all +xack)",
        DEFAULT,
    ]
    assert path.read_text() == "".join(line + "\n" for line in saved)
    assert path.stat().st_mode & 0o777 == 0o640
    client.reply("ACL DELUSER alice")
    assert client.reply("ACL LOAD") == "OK"
    assert users(client) == saved


def test_loading_replaces_all_users_and_disconnects_those_that_are_gone(tmp_path: Path) -> None:
    text = f"{DEFAULT}\n{ALICE} ~* &* +@all\nuser bob on nopass ~* +@all\n"
    server = started_server(with_aclfile(tmp_path, text))
    admin, alice, bob = (server.connect() for _ in range(3))
    assert alice.reply("AUTH alice pw") == "OK"
    assert bob.reply("AUTH bob x") == "OK"
    (tmp_path / "users.acl").write_text(f"{ALICE} ~a +@all\n")
    assert admin.reply("ACL LOAD") == "OK"
    assert (alice.closed, bob.closed) == (False, True)
    assert alice.reply("GET b") == Refusal("NOPERM No permissions to access a key")
    assert users(admin) == [f"{ALICE} ~a resetchannels +@all", DEFAULT]


def test_requirepass_holds_if_the_file_does_not_mention_default(tmp_path: Path) -> None:
    client = started(with_aclfile(tmp_path, "user a on\n", "requirepass secret\n"))
    assert client.reply("PING") == Refusal("NOAUTH Authentication required.")
    assert client.reply("AUTH secret") == "OK"
    assert client.reply("ACL LOAD") == "OK"
    assert client.session.server.users.needs_login()


def test_a_file_with_broken_lines_changes_nothing(tmp_path: Path) -> None:
    client = with_file(tmp_path, DEFAULT + "\n")
    path = tmp_path / "users.acl"
    path.write_text(
        'user a on\nxx\nuser b on ~* bogus\n\nuser a off\nuser c +nope\nuser "open\nuser d (+get\n'
    )
    start = f"ERR {path}:"
    assert client.reply("ACL LOAD") == Refusal(
        f"{start}2 should start with user keyword followed by the username."
        f" {path}:3: Syntax error. WARNING: Duplicate user 'a' found on line 5."
        f" {path}:6: Error in applying operation '+nope': Unknown command or category name in ACL."
        f" {path}:7 should start with user keyword followed by the username."
        f" {path}:8: Unmatched parenthesis in acl selector starting at '(+get'.."
        " WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
    )
    assert users(client) == [DEFAULT]


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    client = with_file(tmp_path, DEFAULT + "\n")
    (tmp_path / "users.acl").unlink()
    assert client.reply("ACL SAVE") == Refusal(
        "ERR There was an error trying to save the ACLs. Please check the server logs for more information"
    )
    assert client.reply("ACL LOAD") == Refusal(
        f"ERR Error loading ACLs, opening file '{tmp_path}/users.acl': No such file or directory"
    )


def test_config_rewrite_writes_user_lines(tmp_path: Path) -> None:
    config = configured(tmp_path, "# users\nuser alice on >pw\nport 1\nuser bob on\n")
    client = started(config)
    client.reply("ACL SETUSER alice ~a*")
    client.reply("ACL DELUSER bob")
    assert client.reply("CONFIG REWRITE") == "OK"
    text = (tmp_path / "penstock.conf").read_text()
    assert text == f"# users\n{ALICE} ~a* resetchannels -@all\n{DEFAULT}\nport 1\n"
    assert users(started(configured(tmp_path, text))) == users(client)


def test_config_rewrite_adds_no_lines_for_the_default_user(tmp_path: Path) -> None:
    client = started(configured(tmp_path, "port 1\n"))
    client.reply("CONFIG SET requirepass secret")
    client.reply("CONFIG REWRITE")
    assert "user" not in (tmp_path / "penstock.conf").read_text()
    client.reply("ACL SETUSER default >more")
    client.reply("CONFIG REWRITE")
    assert "user default on" in (tmp_path / "penstock.conf").read_text()
    client.reply("ACL SETUSER bob on nopass")
    client.reply("CONFIG REWRITE")
    added = (tmp_path / "penstock.conf").read_text().split("\n")
    assert [line.split()[1] for line in added if line.startswith("user ")] == ["bob", "default"]


def test_config_rewrite_removes_user_lines_if_there_is_an_aclfile(tmp_path: Path) -> None:
    client = with_file(tmp_path, DEFAULT + "\n")
    conf = tmp_path / "penstock.conf"
    conf.write_text(conf.read_text() + "user left over\n")
    client.reply("ACL SETUSER bob on")
    client.reply("CONFIG REWRITE")
    assert "user " not in conf.read_text()


def test_new_users_get_the_channels_of_the_setting(tmp_path: Path) -> None:
    client = started(configured(tmp_path, "acl-pubsub-default allchannels\nacllog-max-len 1\n"))
    client.reply("ACL SETUSER z reset (~x)")
    assert users(client)[1] == "user z off sanitize-payload &* -@all (~x &* -@all)"
    client.tell("AUTH a b")
    client.tell("AUTH c d")
    client.replies()
    assert len(client.reply("ACL LOG")) == 1
