"""Outputs that write each batch to a table of a database by JDBC, exactly once.

    1  the driver reads the record of the output in penstock_batches: a batch that is there is dropped
    2  executors write the rows into a new table, penstock_staging_OUTPUT_ATTEMPT
    3  the driver, in one transaction: updates the record, inserts the staged rows into the table, and
       counts them
    4  the driver drops the staging table

After a crash the batch is repeated. If step 3 was committed, step 1 drops it. If not, step 1 also removes the
staging tables of earlier attempts. A table that an attempt still writes to has another name.

Spark may repeat a task whose rows are staged already. Then the staging table has more rows than the batch,
and step 2 is done again. A task of a lost executor may even write after that. So step 3 counts after the
insertion, and does not commit if there are more rows. It does not rely on the number of inserted rows, which
a trigger of the table can change.

penstock_batches is in the schema of the table, and has one row for each output:

    output_id, target    the id that the pipeline gave to the output, and the table
    batch                the number of the last batch
    source_position      JSON: the last id of each stream; for an aggregate its watermark
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from penstock.spark.lake.columns import quoted
from penstock.spark.pipeline.definition.output_section import OutputSection
from penstock.spark.pipeline.targets.jdbc_statements import (
    count_rows,
    execute,
    prepared,
    says_no_table,
    stored_name,
)
from penstock.spark.pipeline.targets.output_error import OutputError
from penstock.spark.runtime.causes import cause_of

RECORDS = "penstock_batches"
STAGING = "penstock_staging_"
STAGINGS_MAX = 3
HIDDEN = "***"

_PARTITIONS = "numpartitions"
_ATTEMPT_DIGITS = 8

_URL_SECRET = re.compile(r"(?i)(?:password|pwd)=([^&;]+)|//[^/@:]*:([^/@]+)@")


@dataclass(frozen=True, slots=True)
class Record:
    """The last batch of an output, as the database knows it."""

    batch: int
    position: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JdbcBatch:
    """Rows to write, the id of the output, the number of the batch, and the position after it."""

    rows: DataFrame
    output_id: str
    number: int
    position: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Staged:
    """A staging table, the number of its rows, and the statement that inserts them."""

    table: str
    count: int
    insert: str


class JdbcTarget:
    """The table of one section."""

    def __init__(self, spark: SparkSession, section: OutputSection) -> None:
        self._spark = spark
        self._section = section
        self._java: Any = spark._jvm
        schema, dot, _ = section.table.rpartition(".")
        self._prefix = schema + dot
        self._records = self._prefix + RECORDS

    def record_or_none(self, output_id: str) -> Record | None:
        """The record of an output. Raises: OutputError."""
        with self._connection() as connection:
            if not self._exists(connection, self._records):
                return None
            return self._record_or_none(connection, output_id)

    def write(self, batch: JdbcBatch, is_done: Callable[[Record | None], bool]) -> int:
        """Write a batch, unless `is_done` says so of the record. Returns the rows written.

        Raises: OutputError.
        """
        with self._connection() as connection:
            self._make_records(connection)
            before = self._record_or_none(connection, batch.output_id)
            self._drop_leftovers(connection, batch.output_id)
        if is_done(before):
            return 0
        with _one_line(self._section):
            rows = storable(batch.rows)
            if rows.isEmpty():
                self._commit(batch, before, None)
                return 0
            self._make_table(rows)
            staging = (
                self._prefix
                + _staging_prefix(batch.output_id)
                + secrets.token_hex(_ATTEMPT_DIGITS // 2)
            )
            insert = f"{self._insertion(rows)} FROM {staging}"
            staged = _Staged(staging, self._stage(rows, staging), insert)
            self._commit(batch, before, staged)
        with suppress(OutputError), self._connection() as connection:
            execute(connection, f"DROP TABLE {staging}")  # otherwise the next batch drops it
        return staged.count

    def problem_or_none(self, rows: DataFrame) -> tuple[str, str] | None:
        """What is wrong with the driver, the login or the table: the key of the section, and a text."""
        try:
            self._need_driver()
        except OutputError as error:
            return "jdbc", str(error)
        try:
            with self._connection():
                pass
        except OutputError as error:
            return "jdbc", f"cannot connect: {error}"
        try:
            with self._connection() as connection:
                self._exists(connection, self._records)  # it must be readable, if it is there
                there = self._exists(connection, self._section.table)
            if there:
                self._insertion(storable(rows))
        except OutputError as error:
            return "table", str(error)
        return None

    def owner_problem_or_none(self, own: Sequence[str]) -> tuple[str, str] | None:
        """Another output that has written to the table, as a problem. `own`: the ids without their query."""
        table = self._section.table
        try:
            with self._connection() as connection:
                ids = self._owners(connection) if self._exists(connection, self._records) else []
        except OutputError as error:
            return "table", str(error)
        others = [one for one in ids if one.partition("/")[0] not in own]
        if not others:
            return None
        return "table", (
            f"another output has written to {table}, of another lake or with another name, so rows may be"
            " there twice: use another table. If this output replaces that one, empty the table, then DELETE"
            f" FROM {self._records} WHERE output_id = '{others[0]}'"
        )

    def _owners(self, connection: Any) -> list[str]:
        """The ids of all outputs that have written to the table."""
        sql = f"SELECT output_id FROM {self._records} WHERE target = ? ORDER BY output_id"
        statement = prepared(connection, sql, self._section.table)
        try:
            found, ids = statement.executeQuery(), []
            while found.next():
                ids.append(str(found.getString(1)))
            return ids
        finally:
            statement.close()

    def _need_driver(self) -> None:
        """Load the JDBC driver, from the jars of the section or of Spark. Raises: OutputError."""
        loader = self._use_jars()
        name = self._section.driver
        try:
            self._java.java.lang.Class.forName(name, True, loader)
        except Py4JJavaError:
            raise OutputError(
                f"there is no JDBC driver {name}: set jars = "
                '"driver.jar" in [output.options], or start Spark with --conf spark.jars=driver.jar'
            ) from None

    def _use_jars(self) -> Any:
        """Give the jars to executors, and to this thread, which creates connections with its class loader."""
        session: Any = self._spark._jsparkSession
        known = str(self._spark.sparkContext._jsc.sc().listJars().mkString("\n"))
        for jar in self._section.jars:
            if "://" not in jar and not Path(jar).exists():
                raise OutputError(f"there is no jar {jar}: see jars in [output.options]")
            if f"/{jar.rpartition('/')[2]}" not in known:
                with _one_line(self._section, f"the jar {jar} cannot be used: "):
                    session.sessionState().resourceLoader().addJar(jar)
        loader = session.sharedState().jarClassLoader()
        self._java.java.lang.Thread.currentThread().setContextClassLoader(loader)
        return loader

    def _options(self, table: str) -> dict[str, str]:
        """The options for Spark's JDBC writer. With numPartitions it would count no rows: see `_parallel`."""
        mine = {"url": self._section.jdbc, "dbtable": table, "driver": self._section.driver}
        given = self._section.options.items()
        return {name: one for name, one in given if name.lower() != _PARTITIONS} | mine

    def _parallel(self, rows: DataFrame) -> DataFrame:
        """The rows in at most numPartitions partitions. SQLite has one writer at a time."""
        given = {name.lower(): one for name, one in self._section.options.items()}
        default = "1" if self._section.database == "sqlite" else ""
        limit = given.get(_PARTITIONS, default)
        return rows.coalesce(int(limit)) if limit else rows

    def _java_options(self, table: str) -> Any:
        java = self._java.org.apache.spark
        options = java.api.python.PythonUtils.toScalaMap(self._options(table))
        return java.sql.execution.datasources.jdbc.JdbcOptionsInWrite(options)

    @property
    def _dialect(self) -> Any:
        return self._java.org.apache.spark.sql.jdbc.JdbcDialects.get(self._section.jdbc)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection of the driver, with the same login as that of the executors. Raises: OutputError."""
        self._need_driver()
        with _one_line(self._section):
            made = self._dialect.createConnectionFactory(self._java_options(self._section.table))
            connection = made.apply(-1)
            try:
                yield connection
            finally:
                with suppress(Py4JError):
                    connection.close()

    @property
    def _utils(self) -> Any:
        return self._java.org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils

    def _exists(self, connection: Any, table: str) -> bool:
        """Whether a table exists. Spark's own test for this fails with SQLite.

        Raises: Py4JJavaError, if the database does not say: a busy one has the table, perhaps.
        """
        try:
            statement = prepared(connection, f"SELECT 1 FROM {table} WHERE 1 = 0")
            try:
                statement.executeQuery()
            finally:
                statement.close()
        except Py4JJavaError as error:
            if says_no_table(error):
                return False
            raise
        return True

    def _create(self, connection: Any, table: str, rows: DataFrame) -> None:
        """Create a table with the columns of some rows, as Spark's JDBC writer would."""
        options = self._java_options(table)
        columns = self._utils.schemaString(
            self._dialect, rows._jdf.schema(), False, options.createTableColumnTypes()
        )
        execute(connection, f"CREATE TABLE {table} ({columns}) {options.createTableOptions()}")

    def _make_records(self, connection: Any) -> None:
        if self._exists(connection, self._records):
            return
        text = self._java.org.apache.spark.sql.types.DataTypes.StringType
        long_text = self._utils.getJdbcType(text, self._dialect).databaseTypeDefinition()
        create = (
            f"CREATE TABLE {self._records} (output_id VARCHAR(100) NOT NULL, target VARCHAR(200) NOT NULL,"
            f" batch BIGINT NOT NULL, source_position {long_text}, PRIMARY KEY (output_id, target))"
        )
        try:
            execute(connection, create)
        except Py4JJavaError:
            if not self._exists(connection, self._records):  # another query has created it
                raise

    def _record_or_none(self, connection: Any, output_id: str) -> Record | None:
        sql = (
            f"SELECT batch, source_position FROM {self._records} WHERE output_id = ? AND target = ?"
        )
        statement = prepared(connection, sql, output_id, self._section.table)
        try:
            found = statement.executeQuery()
            if not found.next():
                return None
            return Record(int(found.getLong(1)), json.loads(found.getString(2)))
        finally:
            statement.close()

    def _drop_leftovers(self, connection: Any, output_id: str) -> None:
        """Drop the staging tables of attempts that did not finish."""
        about = connection.getMetaData()
        prefix = _staging_prefix(output_id)
        schema = stored_name(about, self._prefix.rstrip(".").rpartition(".")[2])
        schema = schema or connection.getSchema() or connection.getCatalog()
        found = about.getTables(None, None, f"{stored_name(about, prefix)}%", None)
        names = []
        while found.next():
            # What stands before the dot is a catalog in MySQL, and a schema elsewhere. SQLite has neither.
            if schema in (found.getString("TABLE_SCHEM"), found.getString("TABLE_CAT")):
                names.append(str(found.getString("TABLE_NAME")))
        found.close()
        for name in names:
            # In the pattern, _ stands for any character.
            if re.fullmatch(rf"{prefix}[0-9a-f]{{{_ATTEMPT_DIGITS}}}", name.lower()):
                execute(connection, f"DROP TABLE {self._prefix}{name}")

    def _make_table(self, rows: DataFrame) -> None:
        """Create the table with the columns of the rows, if it does not exist."""
        with self._connection() as connection:
            if not self._exists(connection, self._section.table):
                self._create(connection, self._section.table, rows)

    def _insertion(self, rows: DataFrame) -> str:
        """INSERT INTO ... SELECT, without FROM. Raises: OutputError, if the table lacks a column."""
        table = self._section.table
        with self._connection() as connection:
            statement = prepared(connection, f"SELECT * FROM {table} WHERE 1 = 0")
            about = statement.executeQuery().getMetaData()
            there = [str(about.getColumnName(n)) for n in range(1, about.getColumnCount() + 1)]
            statement.close()
        folded = {name.lower(): name for name in there}
        missing = [one for one in rows.columns if one.lower() not in folded]
        if missing:
            raise OutputError(
                f"the table {table} has no column {', '.join(missing)}: add it, or write to another table"
            )
        quote = self._dialect.quoteIdentifier
        into = ", ".join(
            quote(one if one in there else folded[one.lower()]) for one in rows.columns
        )
        chosen = ", ".join(quote(one) for one in rows.columns)
        return f"INSERT INTO {table} ({into}) SELECT {chosen}"

    def _stage(self, rows: DataFrame, staging: str) -> int:
        """Write the rows into a new table. Returns their number."""
        self._use_jars()
        for _ in range(STAGINGS_MAX):
            with self._connection() as connection:
                self._create(connection, staging, rows)
            counted = Observation()
            observed = self._parallel(rows).observe(counted, F.count(F.lit(1)).alias("rows"))
            writer = observed.write.format("jdbc").options(**self._options(staging))
            writer.mode("append").save()
            expected = int(counted.get["rows"])
            with self._connection() as connection:
                if count_rows(connection, staging) == expected:
                    return expected
                execute(connection, f"DROP TABLE {staging}")
        raise _other_rows(staging)

    def _commit(self, batch: JdbcBatch, before: Record | None, staged: _Staged | None) -> None:
        """In one transaction, update the record and insert the staged rows. Raises: OutputError."""
        with self._connection() as connection:
            connection.setAutoCommit(False)
            try:
                self._move_record(connection, batch, before)
                if staged is not None:
                    execute(connection, staged.insert)
                    if count_rows(connection, staged.table) != staged.count:
                        raise _other_rows(staged.table)
                connection.commit()
            except Exception:
                with suppress(Py4JError):
                    connection.rollback()
                raise

    def _move_record(self, connection: Any, batch: JdbcBatch, before: Record | None) -> None:
        now = (batch.number, json.dumps(dict(batch.position)))
        key = (batch.output_id, self._section.table)
        if before is None:
            columns = "batch, source_position, output_id, target"
            execute(
                connection,
                f"INSERT INTO {self._records} ({columns}) VALUES (?, ?, ?, ?)",
                *now,
                *key,
            )
            return
        # Of two drivers with the same record, one changes it, and the other finds another batch there.
        sql = (
            f"UPDATE {self._records} SET batch = ?, source_position = ?"
            " WHERE output_id = ? AND target = ? AND batch = ?"
        )
        if execute(connection, sql, *now, *key, before.batch) != 1:
            raise OutputError(f"another run has written to {self._section.table} in the meantime")


def storable(rows: DataFrame) -> DataFrame:
    """The rows with structs, maps and arrays as JSON: few databases have such columns."""
    return rows.select(
        *(
            F.to_json(quoted(one.name)).alias(one.name)
            if _is_nested(one.dataType)
            else quoted(one.name)
            for one in rows.schema
        )
    )


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, StructType | MapType | ArrayType | VariantType)


def _staging_prefix(output_id: str) -> str:
    return f"{STAGING}{sha256(output_id.encode()).hexdigest()[:8]}_"


def _other_rows(staging: str) -> OutputError:
    return OutputError(f"{staging} has other rows than the batch: tasks were repeated. Run again")


@contextmanager
def _one_line(section: OutputSection, before: str = "") -> Iterator[None]:
    """Turn errors of Java and Spark into one line without passwords. Raises: OutputError."""
    try:
        yield
    except Py4JJavaError as error:
        text = error.java_exception.getMessage() or error.java_exception.toString()
        cause = cause_of(error) if "Job aborted" in text else " ".join(text.split())
        raise OutputError(before + without_secrets(cause, section)) from None
    except (PySparkException, Py4JError) as error:
        raise OutputError(before + without_secrets(cause_of(error), section)) from None


def without_secrets(text: str, section: OutputSection) -> str:
    """A text in which the passwords of a section are hidden."""
    options = section.options.items()
    secrets_ = [value for name, value in options if name.lower() in ("password", "pwd")]
    for found in _URL_SECRET.finditer(section.jdbc):
        secrets_ += [one for one in found.groups() if one]
    for secret in secrets_:
        text = text.replace(secret, HIDDEN) if secret else text
    return text
