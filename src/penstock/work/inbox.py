"""Effects in a database, once for each entry: an inbox table in the caller's own transaction.

The table `penstock_inbox` has one row for each entry whose effects were committed. The row is written in the
same transaction as the effects, so both are there or neither. Works with sqlite3 and other DB-API drivers.
"""

from __future__ import annotations

import sys
from typing import Any

_PLACEHOLDERS = {"qmark": "?", "format": "%s", "pyformat": "%s"}
_CREATE = "CREATE TABLE IF NOT EXISTS penstock_inbox (entry VARCHAR(512) PRIMARY KEY)"


class Once:
    """The `with` block of `Message.once`."""

    def __init__(self, connection: Any, names: list[str], given: list[Any]) -> None:
        self._connection = connection
        self._names = names
        self._given = given

    def __enter__(self) -> list[Any]:
        mark = _placeholder(self._connection)
        cursor = self._connection.cursor()
        try:
            cursor.execute(_CREATE)
            if getattr(self._connection, "in_transaction", None) is False:
                # sqlite3: take the write lock now, so that two workers cannot both find nothing.
                cursor.execute("BEGIN IMMEDIATE")
            new = []
            for name, given in zip(self._names, self._given, strict=True):
                cursor.execute(f"SELECT 1 FROM penstock_inbox WHERE entry = {mark}", (name,))
                if cursor.fetchone() is None:
                    # If another transaction inserts the same row, this one fails and is tried again.
                    cursor.execute(f"INSERT INTO penstock_inbox (entry) VALUES ({mark})", (name,))
                    new.append(given)
        except BaseException:
            self._connection.rollback()
            raise
        finally:
            cursor.close()
        return new

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._connection.commit()
        else:
            self._connection.rollback()


def _placeholder(connection: Any) -> str:
    """How the driver of a connection writes a parameter."""
    driver = sys.modules.get(type(connection).__module__.partition(".")[0])
    style = getattr(driver, "paramstyle", "qmark")
    if style not in _PLACEHOLDERS:
        raise TypeError(f"msg.once does not support drivers with the parameter style {style!r}")
    return _PLACEHOLDERS[style]
