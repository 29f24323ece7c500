"""The draft of a pipeline: types of sampled values, and a file that can be read."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.pipeline_draft import Draft, Fields, JsonKinds, text_of, type_of_values
from penstock.spark.pipeline.definition.file import read_pipeline
from penstock.spark.pipeline.definition.rules import rule_problems
from tests.support.command_line import CommandLine
from tests.support.servers.penstock_server import running_penstock

URL = "redis://127.0.0.1:6379"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([b"1", b"-17", b"9223372036854775807"], "bigint"),
        ([b"1", b"9223372036854775808"], "decimal(38,0)"),
        ([b"007", b"12"], "string"),
        ([b"+5"], "string"),
        ([b"9.90", b"4.5", b"3"], "decimal(18,2)"),
        ([b"1e3", b"2.5"], "double"),
        ([b"0.12345678901234567890"], "decimal(38,20)"),
        ([b"9" * 39], "double"),
        ([b"true", b"False"], "boolean"),
        ([b"yes", b"no"], "string"),
        ([b"2026-11-18"], "date"),
        ([b"2026-11-18T10:00:00Z", b"2026-11-18 10:00:00.5"], "timestamp"),
        ([b"2026-11-18", b"soon"], "string"),
        ([b""], "string"),
        ([b"\xff"], "binary"),
        (["ü".encode(), b"\xff"], "binary"),
    ],
)
def test_the_narrowest_type_that_all_values_have(values: list[bytes], kind: str) -> None:
    assert type_of_values(values) == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "bigint"),
        ([1, None], "bigint"),
        ([2**63], "decimal(38,0)"),
        ([1, 2.5], "double"),
        ([True], "boolean"),
        ([True, 1], None),
        (["a", 1], None),
        ([None], None),
        ([[1], [2, 3], []], "array<bigint>"),
        ([[]], None),
        ([{"a": 1, "b c": "x"}, {"a": 2}], "struct<a:bigint,`b c`:string>"),
        ([{"a": [{"sku": "x", "qty": 1}]}], "struct<a:array<struct<sku:string,qty:bigint>>>"),
        ([{"a": None}], None),
        ([{}], None),
        ([*[1] * 10, "x"], "bigint"),
        ([*[1] * 9, "x"], None),
        (["2026-11-18T10:00:00Z"], "timestamp"),
        (["2026-11-18", None], "date"),
        (["12", "9.90"], "string"),
        (["\ud800"], "string"),
    ],
)
def test_the_type_of_json_values(values: list[object], kind: str | None) -> None:
    found = JsonKinds().of(values)
    assert (found and text_of(found)) == kind


def test_names_that_differ_in_case_are_one_member() -> None:
    assert JsonKinds().of_members([{"a": 1, "A": "x"}]) == {"a": "bigint"}


def draft_of(tmp_path: Path, entries: list[Fields], stream: str = "s") -> dict[str, object]:
    """The draft, read by TOML and by pipelines."""
    file = tmp_path / "draft.toml"
    file.write_text(Draft(stream, URL, entries).text, encoding="utf-8")
    pipeline, problems = read_pipeline(file)
    assert pipeline is not None
    assert [*problems, *rule_problems(pipeline)] == []
    return tomllib.loads(file.read_text())


def test_a_draft_has_types_payload_and_columns(tmp_path: Path) -> None:
    body = {"kind": "sale", "ts": 1700000000000, "items": [{"sku": "A1"}], "odd": 1, "qty": 2}
    other = {"kind": "sale", "ts": 1700000000001, "items": [], "odd": "x", "qty": 3}
    entries: list[Fields] = [
        [(b"qty", b"2"), (b"body", json.dumps(body).encode())],
        [(b"qty", b"3"), (b"body", json.dumps(other).encode()), (b"note", b"late")],
    ]
    found = draft_of(tmp_path, entries, "orders:eu")
    assert found["source"] == {
        "url": f"${{PENSTOCK_URL:-{URL}}}",
        "stream": "orders:eu",
        "group": "lake",
    }
    assert found["schema"] == {"qty": "bigint", "note": "string"}
    members = {"kind": "string", "ts": "bigint", "items": "array<struct<sku:string>>"}
    assert found["payload"] == {
        "field": "body",
        "format": "json",
        "schema": {**members, "qty": "bigint"},
    }
    assert found["columns"] == {"kind": "body.kind", "ts": "body.ts"}
    assert found["reject"] == {"stream": "orders:eu:rejected"}
    text = Draft("orders:eu", URL, entries).text
    assert 'note = "string"  # in 1 of 2 entries' in text
    assert "# odd is left out, because its values have several types." in text


def test_rare_mistakes_are_named_and_deeper_members_suggested(tmp_path: Path) -> None:
    user = {"id": 1, "geo": {"country": "DE"}, "first name": "Ann", "none": None}
    body = {"user": user, "at": "2026-11-18T10:00:00Z", "items": [{"sku": "A"}]}
    wrong = body | {"user": user | {"id": "x"}}
    bodies = [*[json.dumps(body)] * 20, json.dumps(wrong), '{"user": ']
    entries: list[Fields] = [[(b"body", text.encode())] for text in bodies]
    found = draft_of(tmp_path, entries)
    assert found["columns"] == {"at": "body.at"}
    text = Draft("s", URL, entries).text
    for line in (
        'field = "body"  # 1 value is not a JSON object: it is rejected',
        "# user.id: 1 of 21 values has another type. Its entry is rejected.",
        "# user.none is left out, because it has no values.",
        '# user_geo_country = "body.user.geo.country"',
        '# "user_first name" = "body.user.`first name`"',
        '# time = "at"',
    ):
        assert f"\n{line}\n" in text
    assert "items" not in str(found["columns"])


def test_replayed_entries_get_the_time_of_the_original(tmp_path: Path) -> None:
    replayed = [(b"qty", b"1"), (b"_source_stream", b"orders"), (b"_source_id", b"1-0")]
    found = draft_of(tmp_path, [[(b"qty", b"2")], replayed])
    assert found["schema"] == {
        "qty": "bigint",
        "_source_stream": "string",
        "_source_id": "string",
    }
    assert found["columns"] == {"happened": "coalesce(id_timestamp(_source_id), _timestamp)"}
    assert '# time = "happened"' in Draft("s", URL, [replayed]).text


NAMES = st.binary(max_size=8) | st.sampled_from(
    [b"_id", b"A", b"a", b"a.b", b'"', b"`", b"\n", b"body", b"\x7f", "\U0001f600".encode()]
)
VALUES = st.binary(max_size=12) | st.sampled_from(
    [
        *(b"{}", b'{"a": 1}', b'{"": null}', b'{"a": {"b.c": [1, {"d`": "x"}]}}', b"[1]", b"1.5"),
        *(b"{", b'{"\x7f": 1}', '{"\U0001f600": {"\U0001f600": 1}}'.encode()),
        *(rb'{"\ud800": 1, "x": {"\udc00": 2, "\ud83d\ude00": 3}}', b'{"\xed\xa0\x80": 1}'),
    ]
)


@given(
    st.lists(st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=4), min_size=1, max_size=5),
    st.sampled_from(["s", "\U0001f600", "\x7f", "\udcff"]),
)
def test_any_entries_give_a_file_that_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Fields], stream: str
) -> None:
    plain = [(b"plain", b"1")]
    draft_of(tmp_path_factory.mktemp("draft"), [*entries, plain], stream)


def test_names_of_any_characters_are_written_and_those_that_are_no_text_left_out(
    tmp_path: Path,
) -> None:
    body = rb'{"\ud83d\ude00": 1, "\ud800": 2}'
    found = draft_of(tmp_path, [[(b"body", body), ("\U0001f431".encode(), b"1")]])
    assert found["schema"] == {"\U0001f431": "bigint"}
    assert found["payload"] == {
        "field": "body",
        "format": "json",
        "schema": {"\U0001f600": "bigint"},
    }
    text = Draft("s", URL, [[(b"body", body)]]).text
    assert "# ? is left out, because its name is not valid Unicode." in text


def test_the_command_writes_a_new_file_without_the_password(tmp_path: Path) -> None:
    with running_penstock("--requirepass", "geheim") as server:
        line = CommandLine(server)  # type: ignore[arg-type]
        line.environment = {"PENSTOCK_URL": f"redis://:geheim@127.0.0.1:{server.port}"}
        file = tmp_path / "orders.toml"
        code, told = line.error("pipeline", "new", "orders", "--out", str(file))
        assert (code, told) == (1, "orders: there are no entries to look at")
        line.run("add", "orders", "qty=2")
        line.run("pipeline", "new", "orders", "--out", str(file))
        assert 'qty = "bigint"' in file.read_text()
        assert "geheim" not in file.read_text()
        code, told = line.error("pipeline", "new", "orders", "--out", str(file))
        assert code == 2
        assert "File exists" in told
