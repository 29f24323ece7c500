"""Exports: the same entries in every kind of file."""

from __future__ import annotations

import csv
import io
import json

import pytest

from penstock.client.replies import Entry
from penstock.core.stream_id import LARGEST, StreamID
from penstock.human.where import parse_conditions
from penstock.web.model.exports import CHUNK_ENTRIES, TYPES, CsvWriter, ExportSelection, export
from penstock.web.server.asking import ServerClient
from tests.web.conftest import Live

COUNT = 2 * CHUNK_ENTRIES + 7


def exported(live: Live, selection: ExportSelection, kind: str) -> bytes:
    async def run(server: ServerClient) -> bytes:
        return b"".join([piece async for piece in export(server, selection, kind)])

    return live.ask(run)


def ids_of(data: bytes, kind: str) -> list[str]:
    if kind == "jsonl":
        return [json.loads(line)["id"] for line in data.splitlines()]
    if kind == "csv":
        return [row["id"] for row in csv.DictReader(io.StringIO(data.decode()))]
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(data))
    return [str(value) for value in table.column("_id").to_pylist()]


@pytest.fixture
def stream(live: Live) -> Live:
    pipeline = live.client.pipeline(transaction=False)
    for number in range(1, COUNT + 1):
        pipeline.xadd("s", {"n": number}, id=f"{number}-0")
    pipeline.execute()
    return live


@pytest.mark.parametrize("kind", TYPES)
def test_an_export_has_every_entry_once(stream: Live, kind: str) -> None:
    data = exported(stream, ExportSelection(b"s"), kind)
    assert ids_of(data, kind) == [f"{number}-0" for number in range(1, COUNT + 1)]


@pytest.mark.parametrize("kind", TYPES)
def test_an_export_of_a_range_has_both_ends(stream: Live, kind: str) -> None:
    selection = ExportSelection(b"s", StreamID(5, 0), StreamID(CHUNK_ENTRIES + 5, 0))
    expected = [f"{number}-0" for number in range(5, CHUNK_ENTRIES + 6)]
    assert ids_of(exported(stream, selection, kind), kind) == expected


@pytest.mark.parametrize("kind", TYPES)
def test_an_empty_export_is_a_valid_file(live: Live, kind: str) -> None:
    assert ids_of(exported(live, ExportSelection(b"s"), kind), kind) == []


def test_an_export_has_the_selected_ids_or_matching_entries(stream: Live) -> None:
    chosen = ExportSelection(b"s", ids=(StreamID(3, 0), StreamID(1, 0), StreamID(10**6, 0)))
    assert ids_of(exported(stream, chosen, "jsonl"), "jsonl") == ["3-0", "1-0"]
    filtered = ExportSelection(b"s", conditions=tuple(parse_conditions("n~7$")), limit=3)
    assert ids_of(exported(stream, filtered, "csv"), "csv") == ["7-0", "17-0", "27-0"]


def test_a_csv_holds_no_formula_and_keeps_numbers(live: Live) -> None:
    fields = {"=cmd": "=1+1", "a": "-1.5e3", "b": "+SUM(1)", "c": "@x", "d": "-", "e": "\t=1"}
    live.client.xadd("s", fields)
    text = exported(live, ExportSelection(b"s"), "csv").decode()
    heading, row = csv.reader(io.StringIO(text, newline=""))
    assert heading[2] == "'=cmd"
    assert row[2:8] == ["'=1+1", "-1.5e3", "'+SUM(1)", "'@x", "'-", "'\t=1"]


@pytest.mark.parametrize("formula", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "⁺", "−"])
@pytest.mark.parametrize(
    "before",
    ["", "\n", "\r", "\r\n", "\t", "\0", " ", "  \n ", "\u00a0", "\u3000", "\ufeff", "\u200b", "\x1f",
     '"', "'", '" ', "“", "＂", "\u2028", "\u202e"],
)  # fmt: skip
def test_a_csv_cell_that_a_spreadsheet_could_run_gets_an_apostrophe(
    before: str, formula: str
) -> None:
    text = f"{before}{formula}HYPERLINK(1)"
    writer = CsvWriter(ExportSelection(b"s"))
    data = writer.write([Entry(StreamID(1, 0), [(text.encode(), text.encode())])])
    heading, row = csv.reader(io.StringIO(data.decode(), newline=""))
    assert (heading[2], row[2]) == (f"'{text}", f"'{text}")


@pytest.mark.parametrize("text", ["\nx", "\tx", "\rx", "\0x", "\t", "\r"])
def test_a_csv_cell_with_a_control_character_in_front_gets_an_apostrophe(text: str) -> None:
    data = CsvWriter(ExportSelection(b"s")).write([Entry(StreamID(1, 0), [(b"a", text.encode())])])
    _, row = csv.reader(io.StringIO(data.decode(), newline=""))
    assert row[2] == f"'{text}"


@pytest.mark.parametrize(
    "text", ["", " ", "-1", "+1.5e3", " -1", "a=1", "x\n=1", '"a"', "1-0", "ﬁ", "日本", "{}"]
)
def test_other_csv_cells_are_unchanged(text: str) -> None:
    data = CsvWriter(ExportSelection(b"s")).write([Entry(StreamID(1, 0), [(b"a", text.encode())])])
    _, row = csv.reader(io.StringIO(data.decode(), newline=""))
    assert row[2] == text


def test_a_csv_keeps_fields_without_a_column(live: Live) -> None:
    live.client.execute_command("XADD", "s", "1-0", "a", 'x,"y"', "a", "again", "b", "\n")
    text = exported(live, ExportSelection(b"s"), "csv").decode()
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert (row["a"], row["b"], json.loads(row["more"])) == ('x,"y"', "\n", {"a": "again"})


def test_binary_values_are_exact_in_jsonl(live: Live) -> None:
    live.client.xadd("s", {"b": b"\xff\x00"}, id=str(LARGEST))
    row = json.loads(exported(live, ExportSelection(b"s"), "jsonl"))
    assert (row["id"], row["time"], row["base64"]) == (str(LARGEST), None, {"b": "/wA="})


def test_formulas_are_kept_on_request() -> None:
    text = "=HYPERLINK(1)"
    writer = CsvWriter(ExportSelection(b"s", keeps_formulas=True))
    data = writer.write([Entry(StreamID(1, 0), [(text.encode(), text.encode())])])
    heading, row = csv.reader(io.StringIO(data.decode(), newline=""))
    assert (heading[2], row[2]) == (text, text)
