"""The slow commands of a server, from SLOWLOG."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.replies import Reply, array, blob, number
from penstock.human.show import harmless
from penstock.web.server.asking import ServerClient

COUNT_MAX = 128
COMMAND_CHARACTERS_MAX = 300


@dataclass(frozen=True, slots=True)
class SlowCommand:
    """A command that took long. Client and name are empty before Redis 4."""

    number: int
    at_ms: int
    microseconds: int
    command: str
    client: str
    name: str


async def slow_commands(server: ServerClient) -> list[SlowCommand]:
    """The newest slow commands, newest first."""
    reply = await server.ask("SLOWLOG", "GET", COUNT_MAX)
    return [parse_slow(row) for row in array(reply)]


def parse_slow(row: Reply) -> SlowCommand:
    """A row of SLOWLOG GET. Raises: UnexpectedReply."""
    sent = array(row)
    rest = [harmless(blob(one)) for one in sent[4:6]] + ["", ""]
    words = " ".join(harmless(blob(word)) for word in array(sent[3])) if len(sent) > 3 else ""
    numbers = [number(one) for one in sent[:3]] + [0, 0, 0]
    if len(words) > COMMAND_CHARACTERS_MAX:
        words = words[:COMMAND_CHARACTERS_MAX] + " ..."
    return SlowCommand(numbers[0], numbers[1] * 1000, numbers[2], words, rest[0], rest[1])
