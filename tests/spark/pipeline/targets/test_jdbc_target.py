"""One table of a real database, without a pipeline: repeated batches, failures at each step, two drivers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.spark.conftest import NO_PYSPARK
from tests.support.campaign import cells
from tests.support.spark.databases import Database, unreadable

pytest.importorskip("pyspark", reason=NO_PYSPARK)

from penstock.spark.pipeline.definition.output_section import OutputSection
from penstock.spark.pipeline.targets import jdbc
from penstock.spark.pipeline.targets.jdbc import JdbcBatch, JdbcTarget, Record, without_secrets
from penstock.spark.pipeline.targets.jdbc_statements import count_rows
from penstock.spark.pipeline.targets.output_error import OutputError

SCHEMA = "_id string, at timestamp, body struct<tags:array<string>>, qty int, price decimal(10,2)"


def target_of(spark: Any, database: Database, table: str = "orders") -> JdbcTarget:
    section = OutputSection(
        name="warehouse",
        jdbc=database.url,
        table=table,
        options=database.options,
        jars=(str(database.jar),),
    )
    return JdbcTarget(spark, section)


def batch_of(spark: Any, number: int, count: int = 2) -> JdbcBatch:
    rows = [(f"{number}-{n}", None, {"tags": ["a"]}, n, None) for n in range(count)]
    frame = spark.createDataFrame(rows, SCHEMA)
    return JdbcBatch(frame, "the-id", number, {"orders": f"{number}-9"})


def write(target: JdbcTarget, batch: JdbcBatch) -> int:
    return target.write(batch, lambda record: record is not None and record.batch >= batch.number)


def ids(database: Database, table: str = "orders") -> list[str]:
    return [str(one) for (one,) in database.ask(f"select _id from {table} order by _id")]


def staging(database: Database) -> list[str]:
    return [one for one in database.tables() if one.startswith(jdbc.STAGING)]


def test_each_batch_is_written_once(spark: Any, database: Database) -> None:
    target = target_of(spark, database)
    assert target.record_or_none("the-id") is None
    assert write(target, batch_of(spark, 1)) == 2
    assert write(target, batch_of(spark, 1)) == 0
    assert write(target, batch_of(spark, 2, 0)) == 0
    assert write(target, batch_of(spark, 3, 1)) == 1
    assert ids(database) == ["1-0", "1-1", "3-0"]
    assert target.record_or_none("the-id") == Record(3, {"orders": "3-9"})
    assert target.record_or_none("another-id") is None
    assert json.loads(database.ask("select body from orders")[0][0]) == {"tags": ["a"]}
    assert database.tables() == {"orders", jdbc.RECORDS}
    assert target.problem_or_none(batch_of(spark, 4).rows) is None


@pytest.mark.parametrize("step", cells(["_stage", "_move_record", "_commit"]))
def test_a_failure_after_any_step_leaves_the_batch_once(
    spark: Any, database: Database, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    target = target_of(spark, database)
    write(target, batch_of(spark, 1, 1))
    real = getattr(JdbcTarget, step)

    def failing(self: JdbcTarget, *words: Any) -> Any:
        real(self, *words)
        raise RuntimeError("stopped by the test")

    with monkeypatch.context() as patch:
        patch.setattr(JdbcTarget, step, failing)
        with pytest.raises(RuntimeError):
            write(target, batch_of(spark, 2))
    assert len(staging(database)) == 1
    is_done = step == "_commit"
    assert ids(database) == (["1-0", "2-0", "2-1"] if is_done else ["1-0"])
    assert write(target, batch_of(spark, 2)) == (0 if is_done else 2)
    assert ids(database) == ["1-0", "2-0", "2-1"]
    assert staging(database) == []


def test_rows_that_were_staged_twice_are_staged_again(
    spark: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(spark, database)
    counts: list[int] = []
    real = count_rows

    def count(connection: Any, table: str) -> int:
        counts.append(real(connection, table))
        return counts[-1] + (1 if len(counts) == 1 else 0)

    monkeypatch.setattr(jdbc, "count_rows", count)
    assert write(target, batch_of(spark, 1)) == 2
    assert counts == [2, 2, 2]
    assert ids(database) == ["1-0", "1-1"]
    monkeypatch.setattr(jdbc, "count_rows", lambda *_: 7)
    with pytest.raises(OutputError, match="tasks were repeated"):
        write(target, batch_of(spark, 2))


def test_a_task_that_writes_after_the_count_does_not_double_rows(
    spark: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(spark, database)
    write(target, batch_of(spark, 1))
    real = JdbcTarget._commit

    def commit(self: JdbcTarget, *words: Any) -> None:
        (name,) = staging(database)
        database.ask(f"insert into {name} select * from {name}")  # a task of a lost executor
        real(self, *words)

    with monkeypatch.context() as patch:
        patch.setattr(JdbcTarget, "_commit", commit)
        with pytest.raises(OutputError, match="has other rows than the batch"):
            write(target, batch_of(spark, 2))
    assert ids(database) == ["1-0", "1-1"]
    assert target.record_or_none("the-id") == Record(1, {"orders": "1-9"})
    assert write(target, batch_of(spark, 2)) == 2
    assert ids(database) == ["1-0", "1-1", "2-0", "2-1"]
    assert staging(database) == []


def test_of_two_drivers_one_fails(spark: Any, database: Database) -> None:
    target = target_of(spark, database)
    write(target, batch_of(spark, 1))
    before = target.record_or_none("the-id")
    target._commit(batch_of(spark, 2), before, None)
    with pytest.raises(OutputError, match="another run has written to orders"):
        target._commit(batch_of(spark, 2), before, None)
    with pytest.raises(OutputError):
        target._commit(batch_of(spark, 2), None, None)  # it saw no record
    assert target.record_or_none("the-id") == Record(2, {"orders": "2-9"})


def test_a_table_that_refuses_rows_gets_nothing_of_the_batch(
    spark: Any, database: Database
) -> None:
    columns = "_id varchar(100), at timestamp, body text, price numeric, more integer"
    database.ask(f"create table orders ({columns}, qty integer check (qty < 2))")
    target = target_of(spark, database)
    write(target, batch_of(spark, 1))
    with pytest.raises(OutputError) as caught:
        write(target, batch_of(spark, 2, 3))
    assert "constraint" in str(caught.value).lower()
    assert "\n" not in str(caught.value)
    assert ids(database) == ["1-0", "1-1"]
    assert target.record_or_none("the-id") == Record(1, {"orders": "1-9"})
    assert write(target, batch_of(spark, 2)) == 2
    assert staging(database) == []


def test_two_queries_may_create_the_table_of_records_at_once(
    spark: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = JdbcTarget._exists
    other = target_of(spark, database, "minutes")
    asked: list[str] = []

    def exists(self: JdbcTarget, connection: Any, table: str) -> bool:
        found = real(self, connection, table)
        asked.append(table)
        if len(asked) == 1:
            write(other, batch_of(spark, 1))  # after the look, before the creation
        return found

    monkeypatch.setattr(JdbcTarget, "_exists", exists)
    write(target_of(spark, database), batch_of(spark, 1))
    assert asked[0] == jdbc.RECORDS
    assert ids(database) == ids(database, "minutes") == ["1-0", "1-1"]


def test_only_a_missing_table_counts_as_missing(spark: Any, database: Database) -> None:
    batch = batch_of(spark, 1)
    assert target_of(spark, database).problem_or_none(batch.rows) is None
    write(target_of(spark, database), batch)
    with unreadable(database) as refusing:
        target = target_of(spark, refusing)
        with pytest.raises(OutputError, match=r"lock|denied"):
            target.record_or_none("the-id")
        problem = target.problem_or_none(batch.rows)
        assert problem is not None
        assert problem[0] == "table"
        with pytest.raises(OutputError, match=r"lock|denied"):
            write(target, batch)
    assert write(target_of(spark, database), batch) == 0
    assert ids(database) == ["1-0", "1-1"]


def test_a_missing_column_is_named(spark: Any, database: Database) -> None:
    database.ask("create table orders (_id varchar(100), qty integer)")
    target = target_of(spark, database)
    text = "the table orders has no column at, body, price: add it, or write to another table"
    assert target.problem_or_none(batch_of(spark, 1).rows) == ("table", text)
    with pytest.raises(OutputError, match="has no column at, body, price"):
        write(target, batch_of(spark, 1))
    assert ids(database) == []


def test_a_table_in_a_schema(spark: Any, database: Database) -> None:
    if database.kind == "sqlite":
        pytest.skip("SQLite has no schemas")
    database.ask('create schema if not exists "Sales"')
    database.ask('drop table if exists "Sales"."Orders", "Sales".penstock_batches')
    target = target_of(spark, database, '"Sales"."Orders"')
    for _ in range(2):
        write(target, batch_of(spark, 1))
    assert ids(database, '"Sales"."Orders"') == ["1-0", "1-1"]
    assert database.ask('select count(*) from "Sales".penstock_batches') == [(1,)]
    assert database.tables() == set()


def test_leftovers_are_found_in_a_schema_whose_name_changes_its_case(
    spark: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database.kind == "sqlite":
        pytest.skip("SQLite has no schemas")
    database.ask("drop schema if exists sales cascade")
    database.ask("create schema sales")
    target = target_of(spark, database, "Sales.orders")
    with monkeypatch.context() as patch:
        patch.setattr(JdbcTarget, "_commit", fail)
        with pytest.raises(RuntimeError):
            write(target, batch_of(spark, 1))
    ((name,),) = database.ask("select tablename from pg_tables where tablename like '%staging%'")
    for other in (f"{name}_notes", f"{name[:-1]}x"):
        database.ask(f"create table sales.{other} (a int)")
    database.ask(f"create table public.{name} (a int)")
    write(target, batch_of(spark, 1))
    found = database.ask(
        "select schemaname, tablename from pg_tables where tablename like '%staging%'"
    )
    assert set(found) == {
        ("public", name),
        ("sales", f"{name}_notes"),
        ("sales", f"{name[:-1]}x"),
    }


def fail(*_: Any) -> None:
    raise RuntimeError("stopped by the test")


def test_passwords_are_hidden() -> None:
    section = OutputSection(
        name="a",
        jdbc="jdbc:mysql://me:first@db/x?password=second&x=1",
        options={"Password": "third", "user": "me"},
    )
    assert without_secrets("first second third me", section) == "*** *** *** me"
