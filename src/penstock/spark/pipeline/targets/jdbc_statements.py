"""SQL statements by a JDBC connection of the driver, through py4j."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

# How databases say that a table does not exist. PostgreSQL; MySQL, MariaDB and H2; H2; SQL Server.
_NO_TABLE = ("42P01", "42S02", "42S03", "42S04", "S0002")
_NO_TABLE_ORACLE = ("42000", 942)
_NO_TABLE_TEXT = re.compile("no such table|Table with name .* does not exist")  # SQLite, DuckDB


def prepared(connection: Any, sql: str, *values: str | int) -> Any:
    """A statement with its values. Close it."""
    statement = connection.prepareStatement(sql)
    for at, value in enumerate(values, 1):
        if isinstance(value, int):
            statement.setLong(at, value)
        else:
            statement.setString(at, value)
    return statement


def execute(connection: Any, sql: str, *values: str | int) -> int:
    """Run a statement. Returns how many rows it has changed."""
    statement = prepared(connection, sql, *values)
    try:
        return int(statement.executeUpdate())
    finally:
        statement.close()


def count_rows(connection: Any, table: str) -> int:
    """The number of rows of a table."""
    statement = prepared(connection, f"SELECT count(*) FROM {table}")
    try:
        found = statement.executeQuery()
        found.next()
        return int(found.getLong(1))
    finally:
        statement.close()


def says_no_table(error: Py4JJavaError) -> bool:
    """Whether the database says that a table does not exist."""
    try:
        state = error.java_exception.getSQLState()
        number = error.java_exception.getErrorCode()
    except Py4JError:  # not an error of SQL
        return False
    text = str(error.java_exception.getMessage())
    has_state = state in _NO_TABLE or (state, number) == _NO_TABLE_ORACLE
    return has_state or _NO_TABLE_TEXT.search(text) is not None


def stored_name(about: Any, name: str) -> str:
    """A name as the database stores it: without quotes it may change the case."""
    if name.startswith('"'):
        return name.strip('"')
    if about.storesUpperCaseIdentifiers():
        return name.upper()
    return name.lower() if about.storesLowerCaseIdentifiers() else name
