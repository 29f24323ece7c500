"""Outputs to tables of real databases: each row once, whatever fails in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK, Broker
from tests.spark.pipeline.test_run import AGGREGATE, TEXT, add, pipeline_of
from tests.support.campaign import cells
from tests.support.spark.databases import Database
from tests.support.spark.lake import by_arrow

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.lake.local_files import LocalFiles
from penstock.spark.pipeline.check import check_pipeline
from penstock.spark.pipeline.definition.file import PipelineFileError
from penstock.spark.pipeline.definition.rules import CHECKPOINTS, lake_path
from penstock.spark.pipeline.joined_state import JoinedStates
from penstock.spark.pipeline.operate.resetting import plan_reset, reset
from penstock.spark.pipeline.outputs import queries_of
from penstock.spark.pipeline.rows import frames
from penstock.spark.pipeline.run import (
    PipelineFailed,
    pipeline_session,
    rebuild_pipeline,
    run_pipeline,
)
from penstock.spark.pipeline.section_joining import SectionJoin
from penstock.spark.pipeline.targets.jdbc import JdbcTarget
from penstock.spark.pipeline.targets.output_error import OutputError

__all__ = ["pipeline_of"]  # the fixture


def ids(database: Database, table: str = "orders") -> list[str]:
    """The ids in the table. Checks that each is there once."""
    found = [str(one) for (one,) in database.ask(f"select _id from {table} order by _id")]
    assert len(found) == len(set(found))
    return found


def valid_ids(broker: Broker) -> list[str]:
    entries = broker.client.xrange("orders")
    return [one.decode() for one, fields in entries if fields[b"qty"].isdigit()]


def fail_in(patch: pytest.MonkeyPatch, method: str, before: bool = False) -> Callable[..., Any]:
    """Let a method of the target fail, before or after it has done its work for a batch with rows."""
    real = getattr(JdbcTarget, method)

    def failing(self: JdbcTarget, *words: Any) -> Any:
        if (
            words[-1] is None
        ):  # the commit of a batch without rows, which the aggregate may reach first
            return real(self, *words)
        if not before:
            real(self, *words)
        raise RuntimeError("stopped by the test")

    patch.setattr(JdbcTarget, method, failing)
    return failing


def test_silver_and_windows_are_in_the_database(
    spark: Any, penstock: Broker, database: Database, pipeline_of: Any
) -> None:
    sections = database.section("orders") + database.section("minutes", "totals", "minute")
    pipeline = pipeline_of(penstock, TEXT + AGGREGATE + sections)
    for minute in range(4):
        add(penstock, minute)
        add(penstock, minute, qty="x")
    summary = run_pipeline(pipeline, spark, once=True)
    assert summary.outputs["warehouse"].rows == 4
    assert ids(database) == valid_ids(penstock)
    for minute in range(4, 8):
        add(penstock, minute, sku=f"sku {minute}")
    for _ in range(2):
        run_pipeline(pipeline, spark, once=True)
    assert ids(database) == valid_ids(penstock)
    rows = database.ask("select sku, qty, price from orders order by _id")
    assert [(sku, qty, float(price)) for sku, qty, price in rows][-1] == ("sku 7", 2, 1.5)
    windows = database.ask("select orders, revenue from minutes order by window_start")
    in_stream = len(penstock.client.xrange("minutes"))
    assert [(int(n), float(sum_)) for n, sum_ in windows] == [(1, 3.0)] * in_stream
    assert in_stream >= 4
    assert database.tables() == {"orders", "minutes", "penstock_batches"}
    last = penstock.client.xinfo_stream("orders")["last-generated-id"].decode()
    records = database.ask("select target, source_position from penstock_batches order by target")
    assert [target for target, _ in records] == ["minutes", "orders"]
    assert json.loads(records[1][1]) == {"orders": last}


def test_a_payload_is_json_in_the_database(
    spark: Any, penstock: Broker, database: Database, pipeline_of: Any
) -> None:
    payload = '\n[payload]\nfield = "body"\n[payload.schema]\ntags = "array<string>"\n'
    text = TEXT + payload + database.section("orders")
    add(penstock, 0, body='{"tags": ["a", "b"]}')
    run_pipeline(pipeline_of(penstock, text), spark, once=True)
    ((body,),) = database.ask("select body from orders")
    assert json.loads(body) == {"tags": ["a", "b"]}


@pytest.mark.parametrize(
    ("method", "before"), cells([("_commit", True), ("_commit", False), ("_stage", False)])
)
def test_a_repeated_batch_is_in_the_table_once(
    spark: Any,
    penstock: Broker,
    database: Database,
    pipeline_of: Any,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    before: bool,
) -> None:
    text = TEXT + AGGREGATE + database.section("orders")
    text += database.section("minutes", "totals", "minute")
    add(penstock, 0)
    run_pipeline(pipeline_of(penstock, text), spark, once=True)
    for minute in (1, 5, 9):
        add(penstock, minute)
    with monkeypatch.context() as patch:
        fail_in(patch, method, before)
        with pytest.raises(PipelineFailed, match="stopped by the test"):
            run_pipeline(pipeline_of(penstock, text), spark, once=True)
    assert [one for one in database.tables() if "staging" in one]
    add(penstock, 13)
    run_pipeline(pipeline_of(penstock, text), spark, once=True)
    assert ids(database) == valid_ids(penstock)
    starts = [start for (start,) in database.ask("select window_start from minutes")]
    assert len(starts) == len(set(starts)) == len(penstock.client.xrange("minutes"))
    assert not [one for one in database.tables() if "staging" in one]


def test_an_output_joins_leaves_and_returns_with_each_row_once(
    spark: Any,
    penstock: Broker,
    database: Database,
    pipeline_of: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = TEXT + AGGREGATE
    whole = bare + database.section("orders") + database.section("minutes", "totals", "minute")
    add(penstock, 0)
    run_pipeline(pipeline_of(penstock, bare, "archived"), spark, once=True)
    add(penstock, 5)
    run_pipeline(pipeline_of(penstock, whole, "archived"), spark, once=True)
    assert len(ids(database)) == 2
    add(penstock, 5.1)  # no window closes, so `main` is the query that fails
    with monkeypatch.context() as patch:
        fail_in(patch, "_commit")
        with pytest.raises(PipelineFailed, match="stopped by the test"):
            run_pipeline(pipeline_of(penstock, whole, "archived"), spark, once=True)
    assert len(ids(database)) == 3  # the table is ahead of its query when it leaves
    for minutes, text in ((10, bare), (15, whole)):
        add(penstock, minutes)
        add(penstock, minutes + 0.1, qty="x")
        run_pipeline(pipeline_of(penstock, text, "archived"), spark, once=True)
        assert penstock.client.xlen("orders") == 0
    assert ids(database) == sorted(by_arrow(tmp_path / "lake" / "silver", "_id"))
    assert len(ids(database)) == 5
    windows = len(penstock.client.xrange("minutes"))
    assert database.ask("select count(*) from minutes") == [(windows,)]
    assert windows == 3


def test_a_table_that_was_ahead_of_a_rebuild_gets_no_window_twice(
    spark: Any,
    penstock: Broker,
    database: Database,
    pipeline_of: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline = pipeline_of(
        penstock, TEXT + AGGREGATE + database.section("minutes", source="minute")
    )
    add(penstock, 0)
    run_pipeline(pipeline, spark, once=True)
    for minute in (3, 6):
        add(penstock, minute)
    with monkeypatch.context() as patch:
        fail_in(patch, "_commit")
        with pytest.raises(PipelineFailed, match="stopped by the test"):
            run_pipeline(pipeline, spark, once=True)
    assert database.ask("select count(*) from minutes") != [(0,)]
    rebuild_pipeline(pipeline, spark)
    for minute in (9, 12):
        add(penstock, minute)
        run_pipeline(pipeline, spark, once=True)
    starts = [start for (start,) in database.ask("select window_start from minutes")]
    assert len(starts) == len(set(starts)) == len(penstock.client.xrange("minutes"))


def test_a_catch_up_needs_the_record_with_which_it_was_planned(
    spark: Any, penstock: Broker, database: Database, pipeline_of: Any
) -> None:
    pipeline = pipeline_of(penstock, TEXT + database.section("orders"))
    add(penstock, 0)
    run_pipeline(pipeline, spark, once=True)
    states = JoinedStates(LocalFiles(), lake_path(pipeline, CHECKPOINTS))
    main = queries_of(pipeline)[0]
    output = main.outputs[-1]
    session = pipeline_session(spark)
    join = SectionJoin(pipeline, session, states)
    planned = join.position(main, output)
    database.ask("update penstock_batches set batch = batch + 1")
    rows = frames.no_rows(session, pipeline)
    with pytest.raises(OutputError, match="another run has written to orders"):
        join.catch_up(main, output, rows, planned)
    database.ask("delete from penstock_batches")
    with pytest.raises(OutputError, match="another run has written to orders"):
        join.catch_up(main, output, rows, planned)
    assert database.ask("select count(*) from penstock_batches") == [(0,)]


def test_a_refused_row_stops_the_pipeline_and_is_written_after_the_fix(
    spark: Any, penstock: Broker, database: Database, pipeline_of: Any
) -> None:
    columns = "_stream text, _id text, _timestamp timestamp, sku text, price numeric, at timestamp"
    database.ask(f"create table orders ({columns}, qty integer check (qty < 5))")
    pipeline = pipeline_of(penstock, TEXT + database.section("orders"))
    add(penstock, 0)
    run_pipeline(pipeline, spark, once=True)
    add(penstock, 1, qty=3)
    add(penstock, 1, qty=7)
    with pytest.raises(PipelineFailed) as caught:
        run_pipeline(pipeline, spark, once=True)
    assert caught.value.output == "warehouse"
    assert "\n" not in str(caught.value)
    assert "constraint" in str(caught.value).lower()
    assert len(ids(database)) == 1
    database.ask("alter table orders rename to old")
    database.ask(f"create table orders ({columns}, qty integer)")
    database.ask("insert into orders select * from old")
    run_pipeline(pipeline, spark, once=True)
    assert ids(database) == valid_ids(penstock)


def test_a_missing_column_is_a_problem_with_its_line(
    spark: Any, penstock: Broker, database: Database, pipeline_of: Any
) -> None:
    database.ask("create table orders (_id text, sku text)")
    pipeline = pipeline_of(penstock, TEXT + database.section("orders"))
    with pytest.raises(PipelineFileError) as caught:
        run_pipeline(pipeline, spark, once=True)
    (problem,) = caught.value.problems
    assert "has no column _stream, _timestamp, qty, price, at" in problem.text
    lines = Path(pipeline.file).read_text().split("\n")
    assert lines[problem.line - 1] == 'table = "orders"'


def test_a_table_of_another_output_is_refused_until_it_is_reset_or_deleted(
    spark: Any, penstock: Broker, database: Database, pipeline_of: Any
) -> None:
    add(penstock, 0)
    before = pipeline_of(penstock, TEXT + database.section("orders"))
    run_pipeline(before, spark, once=True)
    renamed = pipeline_of(penstock, TEXT + database.section("orders", "store"))
    with pytest.raises(PipelineFileError) as caught:
        run_pipeline(renamed, spark, once=True)
    (problem,) = caught.value.problems
    assert problem.text.startswith("another output has written to orders")
    lines = Path(renamed.file).read_text().split("\n")
    assert lines[problem.line - 1] == 'table = "orders"'
    database.ask("delete from orders")
    database.ask(problem.text.partition(", then ")[2])
    run_pipeline(renamed, spark, once=True)
    assert ids(database) == valid_ids(penstock)
    for name in ("store", None):
        database.ask("delete from orders")
        reset(renamed, LocalFiles(), plan_reset(renamed, LocalFiles(), name))
        run_pipeline(renamed, spark, once=True)
        assert ids(database) == valid_ids(penstock)


def test_a_missing_driver_and_a_database_that_is_down_are_problems(
    spark: Any, penstock: Broker, pipeline_of: Any
) -> None:
    away = 'name = "a"\ntable = "t"\njdbc = "jdbc:postgresql://127.0.0.1:1/x?password=sesame"'
    other = away.replace('"a"', '"b"').replace("postgresql", "other")
    text = f'{TEXT}\n[[output]]\n{other}\n[output.options]\ndriver = "org.nobody.Driver"\n'
    (problem,) = check_pipeline(pipeline_of(penstock, text), pipeline_session(spark))
    assert "there is no JDBC driver org.nobody.Driver: set jars" in problem.text
    options = '[output.options]\npassword = "sesame"\njars = "/usr/share/java/postgresql.jar"\n'
    text = f"{TEXT}\n[[output]]\n{away}\n{options}"
    (problem,) = check_pipeline(pipeline_of(penstock, text), pipeline_session(spark))
    assert problem.text.startswith("cannot connect: ")
    assert "sesame" not in str(problem)
    assert not check_pipeline(pipeline_of(penstock, text), pipeline_session(spark), True)


def test_a_jar_that_does_not_exist_is_a_problem(
    spark: Any, penstock: Broker, pipeline_of: Any, tmp_path: Path
) -> None:
    section = 'name = "a"\ntable = "t"\njdbc = "jdbc:h2:mem:x"\n[output.options]\njars = "no.jar"\n'
    pipeline = pipeline_of(penstock, f"{TEXT}\n[[output]]\n{section}")
    (problem,) = check_pipeline(pipeline, pipeline_session(spark))
    assert problem.text.startswith(f"there is no jar {tmp_path}/no.jar")
