"""`penstock replay`: errors before Spark is started."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine
from tests.support.servers.penstock_server import running_penstock
from tests.support.servers.redis_server import free_port

STREAMS = ("replay", "--from-stream", "a", "--to", "b")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("replay", "--to", "b"), "either --from-stream or --from-lake"),
        ((*STREAMS, "--from-lake", "lake"), "either --from-stream or --from-lake"),
        (("replay", "--from-stream", "a", "--to", "a"), "are the same stream"),
        ((*STREAMS, "--since", "10-0", "--until", "10-0"), "--until must be later than --since"),
        ((*STREAMS, "--since", "end"), "--until must be later than --since"),
        ((*STREAMS, "--until", "start"), "--until must be later than --since"),
        ((*STREAMS, "--since", "soon"), "'soon' is not a time"),
        (("replay", "--from-stream", "a", "--to", ""), "--to is empty"),
        (("replay", "--from-lake", "nowhere/at/all", "--to", "b"), "is not a directory"),
    ],
)
def test_invalid_arguments_are_refused(
    words: tuple[str, ...], text: str, penstock: CommandLine
) -> None:
    code, told = penstock.error(*words)
    assert code == 2
    assert text in told


def test_an_unreachable_server_is_reported(penstock: CommandLine) -> None:
    code, told = penstock.error(*STREAMS, "--url", f"redis://:secret@127.0.0.1:{free_port()}")
    assert code == 3
    assert "secret" not in told


def test_a_replay_without_anything_new_starts_no_spark() -> None:
    with running_penstock() as server, server.client() as client:
        client.xadd("a", {"v": 1}, id="5-1")
        client.set("penstock:sink:{b}:write:monday:b", 1)
        note = '{"after": {}, "until": {"a": "5-1"}}'
        client.set("penstock:replay:{b}:monday:1:b", note)
        line = CommandLine(server)  # type: ignore[arg-type]
        result = line.run(*STREAMS, "--name", "monday")
    assert result.exit_code == 0
    assert "nothing new since the last run of monday; use --again" in result.stderr
    assert result.stdout == "0 entries appended to b; this replay is named monday\n"


def test_a_replay_of_an_older_version_says_what_to_do() -> None:
    with running_penstock() as server, server.client() as client:
        client.xadd("a", {"v": 1})
        client.set("penstock:sink:{b}:write:monday:b", 1)
        code, told = CommandLine(server).error(*STREAMS, "--name", "monday")  # type: ignore[arg-type]
    assert code == 1
    assert "monday was replayed by an older version" in told
    assert "--again" in told


def test_a_missing_stream_is_reported_before_spark_starts() -> None:
    with running_penstock() as server, server.client() as client:
        line = CommandLine(server)  # type: ignore[arg-type]
        assert line.error(*STREAMS) == (1, "a: no such key")
        client.rpush("a", 1)
        assert line.error(*STREAMS) == (1, "a: holds a list, not a stream")
