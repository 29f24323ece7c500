"""Effects in a database, once for each entry: an inbox table in the caller's own transaction.

The table `penstock_inbox` has one row for each entry whose effects were committed. The row is written in the
same transaction as the effects, so both are there or neither. Works with sqlite3 and other DB-API drivers.

A connection has one transaction at a time. If several threads share it, their blocks run one after the other:
otherwise one thread would commit the half-done effects of another.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

_PLACEHOLDERS = {"qmark": "?", "format": "%s", "pyformat": "%s"}
_CREATE = "CREATE TABLE IF NOT EXISTS penstock_inbox (entry VARCHAR(512) PRIMARY KEY)"

_threads: dict[int, int] = {}  # the thread that is in a block, by the id() of its connection
_turns = threading.Condition()


class Once:
    """The `with` block of `Message.once`."""

    def __init__(self, connection: Any, names: list[str], given: list[Any]) -> None:
        self._connection = connection
        self._names = names
        self._given = given

    def __enter__(self) -> list[Any]:
        mark = _placeholder(self._connection)
        if _commits_by_itself(self._connection):
            raise ValueError("msg.once needs a connection that is not in autocommit mode")
        _begin_turn(self._connection)
        try:
            return self._begin(mark)
        except BaseException:
            try:
                self._connection.rollback()
            finally:
                _end_turn(self._connection)
            raise

    def _begin(self, mark: str) -> list[Any]:
        """Begin the transaction; return what is new."""
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
        finally:
            cursor.close()
        return new

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._commit()
            else:
                self._connection.rollback()
        finally:
            _end_turn(self._connection)

    def _commit(self) -> None:
        try:
            self._connection.commit()
        except BaseException:
            # The next block must not commit what is left of this one.
            self._connection.rollback()
            raise


def _begin_turn(connection: Any) -> None:
    """Wait until no other thread has a block on this connection. Raises: RuntimeError if this thread has."""
    thread = threading.get_ident()
    with _turns:
        if _threads.get(id(connection)) == thread:
            raise RuntimeError(
                "msg.once is already open on this connection in this thread: do not nest it, and in an"
                " async handler do not await inside it"
            )
        _turns.wait_for(lambda: id(connection) not in _threads)
        _threads[id(connection)] = thread


def _end_turn(connection: Any) -> None:
    with _turns:
        del _threads[id(connection)]
        _turns.notify_all()


def _commits_by_itself(connection: Any) -> bool:
    """Tell whether a connection commits every statement, as far as its driver says."""
    ask = getattr(connection, "get_autocommit", None)  # drivers of MySQL
    if callable(ask):
        return bool(ask())
    return getattr(connection, "autocommit", False) is True


def _placeholder(connection: Any) -> str:
    """How the driver of a connection writes a parameter."""
    driver = sys.modules.get(type(connection).__module__.partition(".")[0])
    style = getattr(driver, "paramstyle", "qmark")
    if style not in _PLACEHOLDERS:
        raise TypeError(f"msg.once does not support drivers with the parameter style {style!r}")
    return _PLACEHOLDERS[style]
