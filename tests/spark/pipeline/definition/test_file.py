"""Reading a pipeline file, and every mistake with its line. Needs no Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.spark.pipeline.definition.file import (
    Aggregate,
    PipelineFileError,
    load_pipeline,
    read_pipeline,
)
from penstock.spark.pipeline.definition.rules import rule_problems
from tests.support.source_tree import ROOT

SECRET = "pa55/w@rd"

GOOD = """
[source]
url = "redis://127.0.0.1:7000"
stream = ["orders", "a,b"]
group = "lake"
max_entries = 5000
options = { fetchsize = 100, failOnDataLoss = false }

[schema]
sku = "string"
qty = "int"

[valid]
positive = "qty > 0"

[archive]
path = "lake"
partition_by = ["day", "sku"]
trim = "archived"

[reject]
stream = "rejected"

[[aggregate]]
name = "minute"
window = "1 minute"
watermark = "5 minutes"
group_by = "sku"
measures = { pieces = "sum(qty)" }
stream = "minutes"
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writing(text: str) -> Path:
        path = tmp_path / "orders.toml"
        path.write_text(text)
        return path

    return writing


def told(path: Path) -> list[str]:
    """All problems as "line: text"."""
    pipeline, problems = read_pipeline(path)
    if pipeline is not None:
        problems = [*problems, *rule_problems(pipeline)]
    return [f"{one.line}: {one.text}" for one in sorted(problems)]


def test_a_file_is_read_into_a_pipeline(write: Write, tmp_path: Path) -> None:
    pipeline = load_pipeline(write(GOOD))
    assert pipeline.name == "orders"
    assert pipeline.source.options == {
        "url": "redis://127.0.0.1:7000",
        "stream": '["orders", "a,b"]',
        "group": "lake",
        "startingOffsets": "earliest",
        "maxEntriesPerTrigger": "5000",
        "fetchSize": "100",
        "failOnDataLoss": "false",
    }
    assert pipeline.archive.path == str(tmp_path / "lake")
    assert pipeline.archive.trim == "archived"
    assert (pipeline.reject, pipeline.metrics) == ("rejected", "penstock:metrics")
    assert pipeline.aggregates == (
        Aggregate(
            name="minute",
            window="1 minute",
            watermark="5 minutes",
            measures={"pieces": "sum(qty)"},
            group_by=("sku",),
            stream="minutes",
        ),
    )
    assert told(write(GOOD)) == []


def test_the_example_has_no_problems() -> None:
    assert told(ROOT / "examples/orders.toml") == []


def test_metrics_can_be_switched_off(write: Write) -> None:
    assert load_pipeline(write(GOOD + '[metrics]\nstream = "none"\n')).metrics == ""


def test_values_come_from_the_environment(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    text = GOOD.replace("redis://127.0.0.1:7000", "redis://me:${SECRET}@${HOST:-127.0.0.1}:1/0")
    pipeline = load_pipeline(write(text))
    (server,) = pipeline.source.place.servers
    assert server.settings["password"] == SECRET
    assert server.address == ("127.0.0.1", 1)
    assert SECRET not in repr(pipeline)


def test_a_missing_variable_is_reported(write: Write) -> None:
    text = GOOD.replace("redis://127.0.0.1:7000", "redis://:${NO_SUCH_NAME}@127.0.0.1")
    assert told(write(text)) == [
        "3: the variable NO_SUCH_NAME is not set: set it, or write ${NO_SUCH_NAME:-default}"
    ]


def test_no_problem_quotes_a_password(write: Write) -> None:
    text = GOOD.replace("redis://127.0.0.1:7000", f"redis://:{SECRET}@127.0.0.1")
    problems = told(write(text))
    assert len(problems) == 1
    assert SECRET not in problems[0]
    assert "%2F" in problems[0]


def test_all_problems_of_a_file_are_found_at_once(write: Write) -> None:
    text = """
[source]
url = "http://127.0.0.1"
streem = "orders"
max_entries = 0
[source.options]
fetchsize = 0
mode = "shared"
stream = "other"
[schema]
qty = 3
[valid]
[archive]
path = ""
trim = "always"
partition_by = ["nothing"]
[reject]
[[aggregate]]
window = "1 minute"
[extra]
"""
    found = told(write(text))
    assert [one.split(":")[0] for one in found] == [
        *("2", "3", "4", "5", "7", "8", "9", "10", "11", "14", "15", "16", "17"),
        *("18", "18", "18", "20"),
    ]
    everything = "\n".join(found)
    assert (
        "streem is unknown in [source] (did you mean stream?); allowed are url, stream"
        in everything
    )
    assert "2: [source] needs either stream or streamPattern" in found
    assert "5: max_entries must be a whole number, at least 1" in found
    assert "8: a pipeline does not allow the option mode: all outputs read the same" in everything
    assert "9: set stream in [source], as stream" in found
    assert '15: trim must be "never" or "archived" or "acked"' in found
    assert "16: there is no column nothing; there are day" in found
    assert "17: [reject] needs stream" in found
    assert "18: [[aggregate]] needs watermark" in found
    assert "20: extra is unknown; allowed are source, schema, payload" in everything


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[source]\nurl = "x\n', "2: not TOML: Illegal character '\\n'"),
        ("a = 1\na = 2\n", "2: not TOML: Cannot overwrite a value"),
        ("[source\n", "1: not TOML"),
        ("\n\na = [1,\n", "3: not TOML"),
    ],
)
def test_invalid_toml_is_refused_with_its_line(write: Write, text: str, problem: str) -> None:
    (found,) = told(write(text))
    assert found.startswith(problem)


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"a = 1\nb = '\xff'\n")
    assert told(path) == ["2: a TOML file must be UTF-8, and this byte is not"]


def test_missing_sections_are_named(write: Write) -> None:
    assert told(write("")) == [
        f"1: [{name}] is missing" for name in ("archive", "schema", "source")
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"rejected"', '"orders"', "is read by [source]: the pipeline would read what it writes"),
        ('"minutes"', '"rejected"', "rejected is already the stream of another output"),
        (
            '"minutes"',
            '"penstock:metrics"',
            "penstock:metrics is already the stream of another output",
        ),
        ('name = "minute"', 'name = "silver"', "there is already an output silver"),
        ('name = "minute"', 'name = "a/b"', "the name of an aggregate may have letters"),
        ('name = "minute"', 'name = "m"\npath = "lake/silver"', "collides with silver"),
        ('name = "minute"', 'name = "m"\npath = "lake"', "collides with bronze"),
        ("positive =", '"a,b" =', "the name of a condition may have letters"),
        ("qty =", "fields =", "fields is a column of the source itself"),
        ("qty =", "SKU =", "SKU and sku are the same column to Spark"),
        ("pieces =", "day =", "the aggregate already has a column day"),
        ('group_by = "sku"', 'group_by = "sk"', "there is no column sk; there are _stream"),
        ("window =", 'time = "when"\nwindow =', "there is no column when"),
        ("[valid]", "[columns]\nqty = 'sku'\n[valid]", "qty and qty are the same column"),
        ("[valid]", "[columns]\n_id = 'sku'\n[valid]", "_id is a column of the source itself: use"),
        ("[valid]", "[columns]\na = 1\n[valid]", "a must be a SQL expression"),
        ("[valid]", "[payload]\nfield = 'sku'\n[valid]", "sku and sku are the same column"),
        ("[valid]", "[payload]\nfield = 'b'\n[valid]", "[payload] needs schema = {member"),
        ("[valid]", "[payload]\nformat = 'json'\n[valid]", "[payload] needs field"),
        ("[valid]", "[payload]\nformat = 'xml'\n[valid]", 'format must be "json"'),
        ("[valid]", "[payload.schema]\na = 'int'\nA = 'int'\n[valid]", "A and a are the same name"),
        ('group_by = "sku"', 'group_by = "b.kind"', 'write kind = "b.kind" in [columns]'),
        ("[reject]", "[rejects]", "rejects is unknown (did you mean reject?)"),
        ('path = "lake"', 'path = "orders.toml"', "orders.toml is not a directory"),
        ("[schema]", "[source.more]\n[schema]", "more is unknown in [source]"),
        ("[[aggregate]]", "[aggregate]", "aggregate must be an array of tables: [[aggregate]]"),
        ("fetchsize = 100", "fetchsiz = 100", "did you mean fetchSize?"),
        (
            "max_entries",
            "starting = 'latest'\nmax_entries",
            "that no output has read: set starting",
        ),
        ("max_entries", "starting = 'now'\nmax_entries", "expected earliest, latest, or a JSON"),
    ],
)
def test_conflicting_keys_are_reported(write: Write, old: str, new: str, problem: str) -> None:
    found = told(write(GOOD.replace(old, new, 1)))
    assert any(problem in one for one in found), found


def test_a_pattern_must_not_match_an_output(write: Write) -> None:
    found = told(write(GOOD.replace('stream = ["orders", "a,b"]', 'streamPattern = "re*"')))
    assert found == [
        "22: rejected is read by [source]: the pipeline would read what it writes",
    ]


def test_two_aggregates_in_one_folder_collide(write: Write) -> None:
    again = GOOD[GOOD.index("[[aggregate]]") :].replace('"minutes"', '"others"')
    text = GOOD + again.replace('name = "minute"', 'name = "other"\npath = "lake/gold/minute"')
    (found,) = told(write(text))
    assert found.startswith("33: ")
    assert found.endswith("collides with minute, in " + found.rpartition("in ")[2])


def test_starting_may_be_an_id_for_each_stream(write: Write) -> None:
    text = GOOD.replace("max_entries", 'starting = { orders = "5-0" }\nmax_entries')
    assert load_pipeline(write(text)).source.options["startingOffsets"] == '{"orders": "5-0"}'
    text = GOOD.replace("fetchsize = 100", "startingTimestamp = 100")
    options = load_pipeline(write(text)).source.options
    assert options["startingTimestamp"] == "100"
    assert "startingOffsets" not in options


def test_an_error_has_all_problems(write: Write) -> None:
    with pytest.raises(PipelineFileError) as caught:
        load_pipeline(write(GOOD.replace("[schema]", "[scheme]")))
    assert [one.line for one in caught.value.problems] == [9, 1]
    assert "orders.toml:9: scheme is unknown (did you mean schema?)" in str(caught.value)
