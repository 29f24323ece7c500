"""Every command ends with one line and an exit code, for any reply of a server."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.client import bounded_replies
from tests.support.campaign import SOAK
from tests.support.servers.hostile_server import ENDLESS, REPEATED, REPLIES, hostile

COMMANDS = {
    "add": ["add", "s", "a=1"],
    "add from stdin": ["add", "s", "-"],
    "tail": ["tail", "s", "-n", "1"],
    "tail a range": ["tail", "s", "--from", "1h", "--until", "1m", "--no-follow"],
    "tail two streams": ["tail", "s", "t", "--no-follow", "--json"],
    "tail a group": ["tail", "s", "--group", "g", "--no-follow"],
    "tail a new group": ["tail", "s", "--group", "g", "--create-group", "--from", "1h", "--no-follow"],
    "groups": ["groups", "s"],
    "consumers": ["groups", "s", "g"],
    "pending": ["pending", "s", "g"],
    "pending with payload": ["pending", "s", "g", "--payload", "--json"],
    "info": ["info"],
    "info of a stream": ["info", "s"],
    "inspect": ["inspect", "no-such-file"],
    "inspect a node": ["inspect", "no-such-file", "--node", "-1"],
    "replay": ["replay", "--from-stream", "s", "--to", "t"],
    "replay of the last hour": ["replay", "--from-stream", "s", "--to", "t", "--since", "1h"],
}  # fmt: skip

# The three ways to read the bytes of a reply: one at a time, many at once, and with the clients of Spark.
PARSED_BY = ("info", "add from stdin", "replay")


def run(url: str, words: list[str]) -> Result:
    """Run in this process. Exceptions other than an exit fail the test."""
    return CliRunner().invoke(
        app,
        [*words, "--url", url],
        input='{"a":1}\n',
        catch_exceptions=False,
        prog_name="penstock",
    )


def check(result: Result, codes: tuple[int, ...]) -> None:
    assert result.exit_code in codes
    assert "Traceback" not in result.output
    lines = result.stderr.splitlines()
    assert all(line.startswith("penstock: ") and line.isprintable() for line in lines)
    assert len(lines) >= (result.exit_code != 0)


@pytest.mark.parametrize("command", COMMANDS if SOAK else PARSED_BY)
@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_an_invalid_reply(reply: bytes, command: str) -> None:
    with hostile(reply) as server:
        check(run(server.url, COMMANDS[command]), (1, 3))


@pytest.mark.parametrize("command", COMMANDS)
def test_nested_arrays_end_every_command(command: str) -> None:
    with hostile(REPLIES["nested a hundred thousand deep"]) as server:
        result = run(server.url, COMMANDS[command])
    check(result, (1, 3))
    assert f"the server nested arrays more than {bounded_replies.DEPTH_MAX} deep" in result.stderr


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("reply", [*REPEATED], ids=REPEATED)
def test_a_reply_of_the_wrong_type(reply: str, words: list[str]) -> None:
    with hostile(b"", answers=REPEATED[reply]) as server:
        check(run(server.url, words), (0, 1, 3))


@pytest.mark.parametrize("command", COMMANDS if SOAK else PARSED_BY)
@pytest.mark.parametrize("name", ENDLESS)
def test_a_reply_that_never_ends(name: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_replies, "REPLY_BYTES_MAX", 1 << 16)
    with hostile(*ENDLESS[name]) as server:
        check(run(server.url, COMMANDS[command]), (1, 3))
