"""Settings: parsing, refusals, and updating a file."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from penstock.engine import events
from penstock.engine.execute import Engine
from penstock.errors import ConfigError
from penstock.server.command_table import ROWS
from penstock.server.config import directives
from penstock.server.config import file as config_file
from penstock.server.config.settings import Config, Directive
from penstock.server.net.output_limits import OutputLimit
from penstock.server.server import NEVER_SLOW, Server, Timer
from penstock.server.session.states import OUT_OF_MEMORY


class StillLoop:
    """A loop that runs nothing."""

    def call_soon(self, callback: object) -> object:
        return None

    def call_later(self, delay: float, callback: object) -> Timer:
        raise AssertionError("no timer is expected")


def loaded(*words: str) -> Config:
    config = directives.default_config()
    config.load(config_file.read_command_line(words))
    return config


def from_file(folder: Path, text: str) -> Config:
    path = folder / "penstock.conf"
    path.write_text(text)
    config = directives.default_config()
    config.load(config_file.read_file(str(path)))
    config.file = str(path)
    return config


def refusal(*words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(*words)
    return str(caught.value)


def in_force(*words: str) -> Server:
    server = Server(Engine(), ROWS, StillLoop())
    loaded(*words).attach(server)
    return server


# --- Values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("100", 100),
        ("2b", 2),
        ("1k", 1000),
        ("1kb", 1024),
        ("3M", 3_000_000),
        ("3mb", 3 << 20),
        ("1g", 10**9),
        ("2GB", 2 << 30),
        pytest.param("0" * 5000 + "1kb", 1024, id="thousands of zeros"),
        pytest.param("9" * 5000, 2**64 - 1, id="thousands of digits"),
    ],
)
def test_memory_is_written_with_units(text: str, size: int) -> None:
    assert loaded("--maxmemory", text).value("maxmemory") == size


def test_a_value_out_of_range_is_refused_with_its_place_and_range() -> None:
    assert refusal("--port", "99999") == (
        "command line: port 99999: argument must be between 0 and 65535 inclusive"
    )


def test_a_missing_value_and_an_extra_value_are_refused() -> None:
    assert refusal("--port") == "command line: port: wrong number of arguments"
    assert refusal("--port", "1", "2") == "command line: port 1 2: wrong number of arguments"


def test_an_unknown_name_is_refused_with_the_most_similar() -> None:
    assert refusal("--maxmemroy", "1gb") == (
        "command line: maxmemroy 1gb: unknown directive; did you mean maxmemory?"
    )
    assert refusal("--zzzzzz", "1") == "command line: zzzzzz 1: unknown directive"


def test_directives_without_effect_are_accepted_and_reported() -> None:
    config = loaded("--lazyfree-lazy-expire", "yes", "--io-threads", "4")
    assert config.shown("io-threads") == "4"
    assert config.ignored_names() == ["lazyfree-lazy-expire", "io-threads"]


def test_directives_that_cannot_be_ignored_are_refused_unless_harmless() -> None:
    assert "no cluster mode" in refusal("--cluster-enabled", "yes")
    config = loaded("--cluster-enabled", "no")
    assert config.ignored_names() == []


def test_by_default_every_change_is_synced_before_the_reply_and_no_snapshot_is_due() -> None:
    config = loaded()
    assert config.value("appendonly")
    assert config.value("appendfsync") == "always"
    assert config.value("save") == ()


def test_without_a_log_the_save_points_are_those_of_redis_unless_set() -> None:
    config = loaded("--appendonly", "no")
    assert config.shown("save") == "3600 1 300 100 60 10000"
    config.load(config_file.read_command_line(["--appendonly", "yes"]))
    assert config.shown("save") == ""
    assert loaded("--appendonly", "no", "--save", "").value("save") == ()
    assert loaded("--appendonly", "no", "--save", "60", "5").value("save") == ((60, 5),)


def test_rewrite_keeps_an_empty_save_that_was_set_while_running(tmp_path: Path) -> None:
    config = from_file(tmp_path, "appendonly no\n")
    assert config.file is not None
    config_file.rewrite(config, config.file)
    assert "save" not in Path(config.file).read_text()
    config.change({"save": ()})
    config_file.rewrite(config, config.file)
    assert 'save ""' in Path(config.file).read_text()


def test_a_change_that_fails_leaves_save_unset() -> None:
    config = loaded("--appendonly", "no")
    config.attach(Server(Engine(), ROWS, StillLoop()))
    with pytest.raises(ConfigError):
        config.change({"save": ((1, 1),), "maxclients": 2**32 - 1})
    assert config.shown("save") == "3600 1 300 100 60 10000"


def test_only_noeviction_is_accepted() -> None:
    assert "noeviction" in refusal("--maxmemory-policy", "allkeys-lru")
    assert loaded("--maxmemory-policy", "noeviction").value("maxmemory-policy") == "noeviction"


def test_values_without_a_directive_are_refused() -> None:
    assert refusal("6379") == "command line: 6379: expected --DIRECTIVE VALUE"


def test_a_directive_has_its_old_name_as_well() -> None:
    config = loaded("--list-max-ziplist-size", "64")
    assert config.value("list-max-listpack-size") == 64
    assert config.shown("list-max-ziplist-size") == "64"


@pytest.mark.parametrize("row", directives.VOCABULARY.directives, ids=lambda row: str(row.name))
def test_every_default_can_be_parsed_from_its_text(row: Directive) -> None:
    assert row.parse((row.kind.show(row.default),)) == row.default


def test_no_name_is_in_two_lists() -> None:
    vocabulary = directives.VOCABULARY
    names = [*vocabulary.by_name(), *vocabulary.ignored, *vocabulary.refused]
    assert len(names) == len(set(names))


# --- Files -------------------------------------------------------------------------------------------


def test_a_file_has_comments_quotes_and_any_case(tmp_path: Path) -> None:
    config = from_file(
        tmp_path,
        '# a comment\n\n  PORT 7000  \nrequirepass "with \\x20 blank"\nbind 127.0.0.1 -::1\n'
        "unixsocket '/tmp/a b'\n",
    )
    assert config.value("port") == 7000
    assert config.value("requirepass") == "with   blank"
    assert config.value("bind") == ("127.0.0.1", "-::1")
    assert config.value("unixsocket") == "/tmp/a b"


def test_the_last_line_wins_and_lines_of_save_add_up(tmp_path: Path) -> None:
    config = from_file(tmp_path, "timeout 1\ntimeout 2\nsave 900 1\nsave 300 10\n")
    assert config.value("timeout") == 2
    assert config.value("save") == ((900, 1), (300, 10))
    config.load(config_file.read_command_line(["--save", "", "--timeout", "3"]))
    assert config.value("save") == ()
    assert config.value("timeout") == 3


def test_the_command_line_replaces_the_save_points_of_the_file(tmp_path: Path) -> None:
    config = from_file(tmp_path, "save 900 1\n")
    config.load(config_file.read_command_line(["--save", "60", "5"]))
    assert config.value("save") == ((60, 5),)


def test_an_output_limit_leaves_the_other_classes_alone(tmp_path: Path) -> None:
    config = from_file(
        tmp_path,
        "client-output-buffer-limit normal 5mb 0 0\n"
        "client-output-buffer-limit slave 1mb 2mb 3 pubsub 1kb 0 0\n",
    )
    limits = config.value("client-output-buffer-limit")
    assert limits["normal"] == OutputLimit(5 << 20, 0, 0)
    assert limits["replica"] == OutputLimit(1 << 20, 2 << 20, 3)
    assert limits["pubsub"] == OutputLimit(1024, 0, 0)


def test_a_refusal_names_the_file_and_the_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        from_file(tmp_path, "# first\nport 7000\ntimeout never\n")
    assert str(caught.value) == (
        f"{tmp_path}/penstock.conf:3: timeout never: argument couldn't be parsed into an integer"
    )


def test_quotes_that_do_not_close_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"penstock.conf:1: .*unbalanced quotes"):
        from_file(tmp_path, 'requirepass "open\n')


@pytest.mark.parametrize(
    "line",
    ['requirepass "hunter2', "requirepass hunter2 more", "requirepas hunter2"],
)
def test_a_refusal_does_not_show_a_password(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_file(tmp_path, line + "\n")
    assert "penstock.conf:1: " + line.split(maxsplit=1)[0] in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_included_file_replaces_the_line(tmp_path: Path) -> None:
    (tmp_path / "more-1.conf").write_text("timeout 5\nport 7001\n")
    (tmp_path / "more-2.conf").write_text("hz 20\n")
    config = from_file(tmp_path, f"timeout 1\ninclude {tmp_path}/more-*.conf\nport 7002\n")
    assert [config.value(name) for name in ("timeout", "hz", "port")] == [5, 20, 7002]


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does a file include itself"):
        from_file(tmp_path, f"include {tmp_path}/penstock.conf\n")


def test_an_included_pattern_may_match_no_file(tmp_path: Path) -> None:
    config = from_file(tmp_path, f"include {tmp_path}/no-such-*.conf\nport 7002\n")
    assert config.value("port") == 7002


@pytest.mark.parametrize("line", ["include", "include /no/such/file"])
def test_an_include_without_a_file_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError):
        from_file(tmp_path, line + "\n")


# --- Rewriting ---------------------------------------------------------------------------------------


def test_a_rewrite_keeps_comments_order_and_foreign_lines(tmp_path: Path) -> None:
    config = from_file(
        tmp_path,
        "# mine\ntimeout 1\n\nio-threads 4\nsave 900 1\nport 7000\nsave 300 10\ntimeout 2\n# end\n",
    )
    config.change({"timeout": 9, "save": ((60, 7),), "hz": 50, "requirepass": 'a "b" \x01'})
    config_file.rewrite(config, str(tmp_path / "penstock.conf"))
    assert (tmp_path / "penstock.conf").read_text() == (
        "# mine\ntimeout 9\n\nio-threads 4\nsave 60 7\nport 7000\n# end\n"
        '# Written by CONFIG REWRITE\nrequirepass "a \\x22b\\x22 \\x01"\nhz 50\n'
    )


def test_a_rewritten_file_has_the_same_values(tmp_path: Path) -> None:
    config = from_file(tmp_path, "bind 127.0.0.1 -::1\nclient-output-buffer-limit normal 1mb 0 0\n")
    config.change({"requirepass": "ö blank", "save": ((60, 7), (5, 1)), "hz": 50})
    config_file.rewrite(config, str(tmp_path / "penstock.conf"))
    config_file.rewrite(config, str(tmp_path / "penstock.conf"))
    again = from_file(tmp_path, (tmp_path / "penstock.conf").read_text())
    assert again.values == config.values
    assert sorted(path.name for path in tmp_path.iterdir()) == ["penstock.conf"]


def test_a_rewrite_never_lets_others_read_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "penstock.conf"
    config = from_file(tmp_path, "requirepass secret\n")
    path.chmod(0o600)
    modes: list[int] = []
    real_write = os.write

    def noted_write(fd: int, data: bytes) -> int:
        modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
        return real_write(fd, data)

    monkeypatch.setattr(os, "write", noted_write)
    former = os.umask(0)
    try:
        config_file.rewrite(config, str(path))
    finally:
        os.umask(former)
    assert modes == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666])
def test_a_rewritten_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "penstock.conf"
    config = from_file(tmp_path, "timeout 5\n")
    path.chmod(mode)
    config_file.rewrite(config, str(path))
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_rewrite_through_a_link_leaves_the_link(tmp_path: Path) -> None:
    config = from_file(tmp_path, "timeout 5\n")
    link = tmp_path / "link.conf"
    link.symlink_to("penstock.conf")
    config.change({"timeout": 6})
    config_file.rewrite(config, str(link))
    assert link.is_symlink()
    assert (tmp_path / "penstock.conf").read_text() == "timeout 6\n"


def test_a_rewrite_that_fails_leaves_the_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    config = from_file(tmp_path, "timeout 5\n")
    config.change({"timeout": 6})
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            config_file.rewrite(config, str(tmp_path / "penstock.conf"))
    assert (tmp_path / "penstock.conf").read_text() == "timeout 5\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["penstock.conf"]


# --- In force ----------------------------------------------------------------------------------------


def test_values_are_applied_to_the_server() -> None:
    server = in_force(
        *("--stream-node-max-bytes", "1kb", "--stream-node-max-entries", "7"),
        *("--list-max-listpack-size", "-1", "--proto-max-bulk-len", "1mb"),
        *("--slowlog-log-slower-than", "5", "--slowlog-max-len", "3", "--requirepass", "secret"),
        *("--notify-keyspace-events", "Kx", "--client-query-buffer-limit", "2mb", "--hz", "3"),
        *("--maxclients", "9", "--enable-debug-command", "local"),
        *("--client-output-buffer-limit", "normal 1 2 3"),
    )
    engine = server.engine
    assert (engine.limits.bytes_max, engine.limits.entries_max) == (1024, 7)
    assert engine.list_limits.bytes_max == 4096
    assert server.wire_limits.bulk_bytes_max == 1 << 20
    assert (server.slow_us, server.slow_log.limit) == (5, 3)
    assert server.users.default.is_right(b"secret")
    assert engine.context.event_kinds == events.KEYSPACE | events.EXPIRED
    assert server.query_bytes_max == 2 << 20
    assert (server.hz, server.max_clients) == (3, 9)
    assert server.debug_allowed == "local"
    assert server.output_limits.normal == OutputLimit(1, 2, 3)


def test_slow_log_and_password_can_be_off() -> None:
    server = in_force("--slowlog-log-slower-than", "-1")
    assert server.slow_us == NEVER_SLOW
    assert server.users.default.nopass


def test_maxmemory_takes_effect_at_once() -> None:
    server = in_force("--maxmemory", "1mb")
    assert server.state & OUT_OF_MEMORY
    assert server.config is not None
    server.config.change({"maxmemory": 0})
    assert not server.state & OUT_OF_MEMORY


def test_a_change_that_fails_halfway_changes_nothing() -> None:
    server = in_force()
    config = server.config
    assert config is not None
    with pytest.raises(ConfigError) as caught:
        config.change({"timeout": 5, "hz": 20, "requirepass": "\ud800"})  # cannot be encoded
    assert caught.value.args[1] == "requirepass"
    assert [config.value(name) for name in ("timeout", "hz", "requirepass")] == [0, 10, ""]
    assert server.hz == 10
