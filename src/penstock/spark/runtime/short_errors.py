"""Shortens the tracebacks that Spark shows for errors of the source and the sink.

Spark runs their methods in worker processes and sends an error to the driver as the text of its traceback.
For a wrong option or a server that is down, that is up to 70 lines of frames before the one line that says
what happened. `short_errors` keeps one frame, so the message is the fourth line of Spark's error. Errors that
are not expected, such as a TypeError in this package, keep their traceback.

The full traceback goes to the log at level DEBUG.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

import redis

from penstock.errors import PenstockError

log = logging.getLogger(__name__)

C = TypeVar("C", bound=type)

EXPECTED = (PenstockError, redis.RedisError, OSError, LookupError)


def short_errors(cls: C) -> C:
    """Decorate a class whose public methods Spark calls: their expected errors get short tracebacks."""
    for name, member in list(vars(cls).items()):
        if callable(member) and not name.startswith("_"):
            setattr(cls, name, _shortened(member))
    return cls


def _shortened(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)  # Spark looks at the signature
    def call(*args: Any, **named: Any) -> Any:
        try:
            found = method(*args, **named)
        except EXPECTED as error:
            failed = _stripped(error)
        else:
            return _iterated(found) if isinstance(found, Iterator) else found
        raise failed

    return call


def _iterated(batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches. A generator fails while it is read, after the method has returned."""
    try:
        yield from batches
        return
    except EXPECTED as error:
        failed = _stripped(error)
    raise failed


def _stripped(error: BaseException) -> BaseException:
    log.debug("an error for Spark", exc_info=error)
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
