"""The dead letters of a stream, which a worker wrote to STREAM:dead."""

from __future__ import annotations

from penstock.client.dead_letters import SUFFIX
from penstock.client.replies import Entry
from penstock.web.model.stream_page import NEWEST, read_entries
from penstock.web.server.asking import ServerClient

SHOWN_MAX = 50


async def dead_letters_of(server: ServerClient, stream: bytes) -> list[Entry]:
    """The newest dead letters of a stream, newest first. Empty if there are none."""
    return await read_entries(server, stream + SUFFIX, NEWEST, SHOWN_MAX)
