"""Checks of a pipeline before it runs: types, SQL, durations, servers and keys, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.support.servers.penstock_server import running_penstock

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.check import check_pipeline
from penstock.spark.pipeline.definition.file import read_pipeline
from penstock.spark.pipeline.run import pipeline_session

TEXT = """[source]
url = "URL"
stream = "orders"
[schema]
sku = "string"
qty = "int"
at = "timestamp"
[valid]
positive = "qty > 0"
[archive]
path = "lake"
[reject]
stream = "rejected"
[[aggregate]]
name = "minute"
time = "at"
window = "1 minute"
watermark = "5 minutes"
group_by = ["sku"]
measures = { pieces = "sum(qty)" }
stream = "minutes"
"""

Check = Callable[..., list[str]]


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    return pipeline_session(spark)


@pytest.fixture
def check(session: Any, tmp_path: Path) -> Check:
    """Check TEXT after replacements. Returns the problems as "line: text"."""

    def checking(*changes: tuple[str, str], url: str = "") -> list[str]:
        text = TEXT.replace("URL", url or "redis://127.0.0.1:1")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "orders.toml"
        path.write_text(text)
        pipeline, problems = read_pipeline(path)
        assert pipeline is not None
        found = [*problems, *check_pipeline(pipeline, session, is_offline=not url)]
        return [f"{one.line}: {one.text}" for one in found]

    return checking


def test_a_valid_pipeline_has_no_problems(check: Check, server: Broker) -> None:
    assert check(url=server.options["url"]) == []
    server.client.xadd("orders", {"a": 1})
    assert check(url=server.options["url"]) == []


def test_a_missing_watermark_is_reported_once_and_by_name(check: Check) -> None:
    assert check(('watermark = "5 minutes"\n', "")) == ["14: [[aggregate]] needs watermark"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"int"', '"integr"', "6: 'integr' is not a type for a column: Unsupported data type"),
        ('"int"', '"decimal(10,2"', "6: 'decimal(10,2' is not a type for a column: Syntax error"),
        ('"int"', '"decimal(99,2)"', "6: 'decimal(99,2)' is not a type for a column"),
        ('"int"', '"variant"', "6: 'variant' is not a type for a column"),
        ("qty > 0", "qty >", "9: positive: Syntax error at or near end of input"),
        ("qty > 0", "qyt > 0", "9: positive: A column"),
        ("qty > 0", "qty + 1", "9: positive is int, but must be boolean"),
        ("qty > 0", "sum(qty) > 0", "9: positive: The WHERE condition"),
        ("qty > 0", "rand() > 0.5", "9: positive may change between evaluations"),
        ("qty > 0", "uuid() > sku", "9: positive may change between evaluations"),
        ("qty > 0", "at < now()", "9: positive may change between evaluations"),
        ("qty > 0", "at < Current_Timestamp", "9: positive may change between"),
        ("qty > 0", "qty < unix_timestamp()", "9: positive may change between"),
        ("qty > 0", "nosuch(qty)", "9: positive: Cannot resolve routine `nosuch`"),
        ("1 minute", "1 minut", "17: window is '1 minut', but must be a duration like"),
        ("1 minute", "1 month", "17: window is '1 month', but must be a duration like"),
        ("1 minute", "0 seconds", "17: window is '0 seconds', but must be a duration like"),
        ("5 minutes", "soon", "18: watermark is 'soon', but must be a duration like"),
        ("5 minutes", "-5 minutes", "18: watermark is '-5 minutes', but must be a duration like"),
        ('time = "at"', 'time = "sku"', "16: sku is string, but must be timestamp"),
        (
            'sku = "string"',
            '_ID = "string"\nsku = "string"',
            "5: _ID is a column of the source itself",
        ),
        ("pieces =", "Window =", "20: the aggregate already has a column Window"),
        ('name = "minute"', 'name = "Silver"', "15: there is already an output Silver"),
        ('name = "minute"', 'name = "_minute"', "15: _minute: readers skip directories"),
        ("sum(qty)", "sum(nope)", "20: pieces: A column"),
        ("sum(qty)", "max(now())", "20: pieces may change between evaluations"),
        ("sum(qty)", "qty + 1", "20: pieces: The non-aggregating expression"),
        ("sum(qty)", "count(distinct qty)", "20: Distinct aggregations are not supported"),
    ],
)
def test_a_mistake_is_found_with_its_line(check: Check, old: str, new: str, problem: str) -> None:
    (found,) = check((old, new))
    assert found.startswith(problem)


def test_a_group_by_column_must_not_be_a_column_of_the_aggregate(check: Check) -> None:
    changes = (('sku = "string"', 'day = "string"'), ('["sku"]', '["day"]'))
    assert check(*changes) == ["19: the aggregate already has a column day: rename it in [schema]"]


def test_words_in_quotes_that_look_like_a_clock_are_allowed(check: Check) -> None:
    assert check(("qty > 0", "sku <> 'now()' and qty > 0")) == []


def test_a_group_with_other_consumers_is_refused(check: Check, server: Broker) -> None:
    server.client.xadd("orders", {"a": 1})
    server.client.xgroup_create("orders", "lake", "0")
    change = ('stream = "orders"', 'stream = "orders"\ngroup = "lake"')
    assert check(change, url=server.options["url"]) == []
    server.client.xreadgroup("lake", "ann", {"orders": ">"})
    (found,) = check(change, url=server.options["url"])
    assert found.startswith("4: the group lake of the stream orders has consumers (1)")


def test_partitions_are_columns_that_can_name_a_directory(check: Check) -> None:
    changes = (('"int"', '"map<string,int>"'), ("qty > 0", "true"), ("sum(qty)", "count(*)"))
    partition = ('path = "lake"', 'path = "lake"\npartition_by = ["qty"]')
    (found,) = check(*changes, partition)
    assert found == "12: qty is map<string,int>, which cannot name a directory"
    (found,) = check(('"int"', '"binary"'), *changes[1:], partition)
    assert found == "12: qty is binary, which cannot name a directory"


def test_all_mistakes_are_found_at_once(check: Check) -> None:
    changes = (('"int"', '"integr"'), ("qty > 0", "zz > 0"), ("1 minute", "x"))
    assert [one.split(":")[0] for one in check(*changes)] == ["6", "9", "17"]


def test_a_server_that_is_down_is_reported(check: Check) -> None:
    (found,) = check(url="redis://127.0.0.1:1")
    assert found == "2: 127.0.0.1:1/0: cannot be reached: Connection refused"


def test_keys_that_are_not_streams_are_reported(check: Check, server: Broker) -> None:
    server.client.set("orders", "x")
    server.client.rpush("minutes", "x")
    assert check(url=server.options["url"]) == [
        "3: the key orders holds a string, not a stream",
        "21: the key minutes holds a list, not a stream",
    ]


@pytest.fixture(scope="module")
def locked() -> Iterator[int]:
    with running_penstock("--requirepass", "hunter2") as server:
        yield server.port


@pytest.mark.parametrize(
    ("login", "refusal"),
    [("", "Authentication required"), (":wrong-secret@", "invalid username-password pair")],
)
def test_a_refused_login_is_reported_without_the_password(
    check: Check, locked: int, login: str, refusal: str
) -> None:
    (found,) = check(url=f"redis://{login}127.0.0.1:{locked}")
    assert found.startswith(f"2: 127.0.0.1:{locked}/0: {refusal}")
    assert "secret" not in found


def test_a_password_from_the_environment_is_used(
    check: Check, locked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_PASSWORD", "hunter2")
    assert check(url=f"redis://:${{ORDERS_PASSWORD}}@127.0.0.1:{locked}") == []
