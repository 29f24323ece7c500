"""A Spark session for a command that prints nothing to the terminal by itself.

Java's output goes to a temporary file. If Spark does not start, the error quotes the last line of that file.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from penstock.cli.terminal.outcome import Failure, Unreachable, say
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def need_spark() -> None:
    """Raises: Failure if Spark is not installed."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise Failure("this command needs Spark: pip install 'penstock[spark]'")


@contextmanager
def quiet_session(
    name: str, master: str | None, settings: dict[str, str]
) -> Iterator[SparkSession]:
    """A quiet session. It is stopped at the end, unless it existed before, as in a test.

    Errors that happen while it is used become a Failure with a text of one line.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from penstock.spark.runtime.causes import cause_of
    from penstock.spark.runtime.java import NoJava
    from penstock.spark.runtime.session import build_session

    found = SparkSession.getActiveSession()
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # its errors are raised as well
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        log = Path(folder, "java.log")
        try:
            with _warnings_afterwards(), _stderr_to(log):
                spark = build_session(f"penstock {name}", master, "OFF", settings)
        except NoJava as error:
            raise Failure(str(error)) from None
        except (PySparkException, Py4JError, RuntimeError) as error:
            last = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            reason = f" ({last[-1].strip()})" if last else ""
            raise Failure(f"Spark does not start: {cause_of(error)}{reason}") from None
        try:
            yield spark
        except redis.ConnectionError as error:
            raise Unreachable(str(error)) from None
        except (PySparkException, Py4JError) as error:
            raise Failure(cause_of(error)) from None
        except (PenstockError, redis.RedisError) as error:
            raise Failure(str(error)) from None
        finally:
            if found is None:
                spark.stop()


@contextmanager
def _warnings_afterwards() -> Iterator[None]:
    """Print ForeignDirectory warnings after stderr is restored; Python would write them to Java's log."""
    from penstock.spark.runtime.private_directory import ForeignDirectory

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ForeignDirectory)
        try:
            yield
        finally:
            for one in caught:
                if issubclass(one.category, ForeignDirectory):
                    say(str(one.message))


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Processes started inside write their stderr to a file, as do their children, even afterwards."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("wb") as target:
            os.dup2(target.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
