"""Dead letters are given back as `penstock dead` does."""

from __future__ import annotations

import pytest

from penstock.client import dead_letters
from penstock.client.replies import Entry
from penstock.core.stream_id import StreamID
from penstock.engine.commands.work import rows
from penstock.web.changes.dead_letters import plan_redrive_dead
from penstock.web.changes.entry_changes import carry_out
from penstock.web.http.sessions import Role, Session
from penstock.web.jobs.dead_letters import dead_letters_of
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient
from penstock.work.names import consumer_name
from tests.web.conftest import Live

FACTS = {"_source_stream": "s", "_group": "g", "_reason": "ValueError: no", "_attempts": "5"}


async def redrive(server: ServerClient) -> list[str]:
    chosen = await dead_letters_of(server, b"s")
    change = await plan_redrive_dead(server, b"s", chosen)
    await carry_out(server, Session(Role.OPERATOR), change)
    return list(change.effects)


def test_the_rows_are_those_of_the_engine() -> None:
    assert (dead_letters.WAITING, dead_letters.WINDOW_MS) == (rows.WAITING, rows.WINDOW_MS)
    for consumer in (b"waiting", b"-", b"ann", b"host-12-0123abcd", b"host-12-0123abcde", b"-1-"):
        assert dead_letters.has_due_time(consumer) == rows.has_due_time(consumer)
    assert rows.has_due_time(consumer_name().encode())


def test_an_entry_that_is_still_there_is_given_back(stream_of_ten: Live) -> None:
    client = stream_of_ten.client
    client.xack("s", "g", "1-0")
    client.xadd("s:dead", FACTS | {"n": "1", "_source_id": "1-0"})
    stream_of_ten.ask(redrive, allow_writes=True)
    assert (client.xlen("s:dead"), client.xlen("s")) == (0, 10)
    (row,) = client.xpending_range("s", "g", "1-0", "1-0", 1)
    assert (row["consumer"], row["times_delivered"]) == (b"waiting", 0)
    assert row["time_since_delivered"] >= dead_letters.WINDOW_MS


def test_an_entry_that_is_gone_is_added_again(stream_of_ten: Live) -> None:
    client = stream_of_ten.client
    client.xadd("s:dead", FACTS | {"n": "77", "_source_id": "500-0"})
    effects = stream_of_ten.ask(redrive, allow_writes=True)
    assert effects == ["adds 1 entry again: the original is gone", "removes 1 entry from s:dead"]
    assert client.xlen("s:dead") == 0
    assert client.xrevrange("s", count=1)[0][1] == {b"n": b"77"}


def test_a_letter_stays_if_its_entry_is_deleted_meanwhile(stream_of_ten: Live) -> None:
    client = stream_of_ten.client
    client.xack("s", "g", "1-0")
    client.xadd("s:dead", FACTS | {"n": "1", "_source_id": "1-0"})

    async def redrive_late(server: ServerClient) -> None:
        chosen = await dead_letters_of(server, b"s")
        change = await plan_redrive_dead(server, b"s", chosen)
        await server.change(Session(Role.OPERATOR), "XDEL", "s", "1-0")
        with pytest.raises(Refused, match="XCLAIM had no effect"):
            await carry_out(server, Session(Role.OPERATOR), change)

    stream_of_ten.ask(redrive_late, allow_writes=True)
    assert client.xlen("s:dead") == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([], "no field _source_stream"),
        ([(b"_source_stream", b"s"), (b"_source_id", b"x"), (b"_group", b"g")], "is not an id"),
        ([(b"_source_stream", b"s"), (b"_source_id", b"1-0")], "no field _group"),
    ],
)
def test_an_entry_without_an_origin_is_refused(
    live: Live, fields: list[tuple[bytes, bytes]], said: str
) -> None:
    letter = Entry(StreamID(1, 0), fields)
    with pytest.raises(Refused, match=said):
        live.ask(lambda server: plan_redrive_dead(server, b"s", [letter]))
    with pytest.raises(Refused, match="no entry is selected"):
        live.ask(lambda server: plan_redrive_dead(server, b"s", []))
