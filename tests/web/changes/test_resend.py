"""Resent and redriven entries: their fields and their target."""

from __future__ import annotations

import pytest

from penstock.client.replies import Entry
from penstock.core.stream_id import StreamID
from penstock.web.changes.entry_changes import Change
from penstock.web.changes.resend import (
    SOURCE_ID,
    SOURCE_STREAM,
    plan_redrive,
    plan_resend,
    redriven,
)
from penstock.web.jobs.pipelines import REASON
from penstock.web.model.facts import StreamFacts
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient
from tests.web.changes.planned import planned
from tests.web.conftest import Live

ORIGIN = [(b"_source_stream", b"orders"), (b"_source_id", b"7-1")]
MARKED = Entry(StreamID(2, 0), [(b"v", b"\xff\x00"), (b"_reason", b"even"), *ORIGIN])
BARE = Entry(StreamID(1, 0), [(b"v", b"1"), (b"_reason", b"even"), (b"_reason", b"odd")])


def test_a_redriven_reject_has_the_fields_of_a_replay() -> None:
    assert redriven(b"s", MARKED) == [(b"v", b"\xff\x00"), *ORIGIN]
    assert redriven(b"s", BARE) == [
        (b"v", b"1"),
        (b"_source_stream", b"s"),
        (b"_source_id", b"1-0"),
    ]


def test_rejects_use_the_field_names_of_pipelines() -> None:
    frames = pytest.importorskip("penstock.spark.pipeline.rows.frames", reason="no pyspark")
    ours = (REASON.decode(), SOURCE_STREAM.decode(), SOURCE_ID.decode())
    assert ours == (frames.REASON, frames.SOURCE_STREAM, frames.SOURCE_ID)


@pytest.mark.parametrize("delete", [False, True])
def test_rejects_go_back_to_their_original_stream(live: Live, delete: bool) -> None:
    client = live.client
    client.xadd("s", dict(MARKED.fields), id="2-0")

    async def back(server: ServerClient, facts: StreamFacts) -> Change:
        return await plan_redrive(server, [(b"s", MARKED)], b"", delete)

    change = planned(live, back)
    assert change.effects[0] == "adds 1 entry to orders, without _reason"
    assert "the stream orders does not exist and will be created" in change.warnings
    assert [fields for _, fields in client.xrange("orders")] == [{b"v": b"\xff\x00"} | dict(ORIGIN)]
    assert client.xlen("s") == (0 if delete else 1)
    assert any("added again" in warning for warning in change.warnings) != delete


def test_rejects_go_to_a_given_stream_in_the_order_of_their_ids(live: Live) -> None:
    live.client.xadd("s", {"n": "0"})
    live.client.xadd("again", {"n": "0"})

    async def there(server: ServerClient, facts: StreamFacts) -> Change:
        return await plan_redrive(server, [(b"s", MARKED), (b"s", BARE)], b"again", False)

    change = planned(live, there)
    assert [line.split()[:5] for line in change.command_lines] == [
        ["XADD", "again", "*", "v", "1"],
        ["XADD", "again", "*", "v", '"\\xff\\x00"'],
    ]
    assert len(change.warnings) == 1
    assert live.client.xlen("again") == 3


def test_a_redrive_without_a_target_is_refused(live: Live) -> None:
    live.client.xadd("s", {"n": "0"})
    for chosen, said in (
        ([], "no entry is selected"),
        ([(b"s", BARE)], "1-0 has no field _source_stream"),
    ):

        async def plan(
            server: ServerClient, facts: StreamFacts, chosen: list[tuple[bytes, Entry]] = chosen
        ) -> Change:
            return await plan_redrive(server, chosen, b"", True)

        with pytest.raises(Refused, match=said):
            planned(live, plan)
    assert live.client.xlen("s") == 1


def test_an_entry_is_resent_to_any_stream(live: Live) -> None:
    live.client.xadd("s", {"n": "0"})

    async def resend(server: ServerClient, facts: StreamFacts) -> Change:
        return await plan_resend(server, b"other", [(b"a", b"x\ny"), (b"a", b"2")], "5-5")

    change = planned(live, resend)
    assert change.command_lines == ['XADD other 5-5 a "x\\x0ay" a 2']
    assert change.warnings == ("the stream other does not exist and will be created",)
    assert (
        live.client.execute_command("XRANGE", "other", "-", "+") == [(b"5-5", {b"a": b"2"})]
        or live.client.xlen("other") == 1
    )

    async def nowhere(server: ServerClient, facts: StreamFacts) -> Change:
        return await plan_resend(server, b"", [(b"a", b"1")])

    with pytest.raises(Refused, match="name the stream"):
        planned(live, nowhere)
