"""Errors that Spark shows have one frame; unexpected errors keep their traceback."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator

import pytest
import redis

from penstock.errors import PenstockError
from penstock.spark.runtime.short_errors import short_errors


@short_errors
class Source:
    def expected(self) -> None:
        try:
            raise OSError("the cause")
        except OSError as error:
            raise redis.ConnectionError("no server") from error

    def unexpected(self) -> None:
        self._deep()

    def rows(self, count: int) -> Iterator[int]:
        yield from range(count)
        raise PenstockError("no more rows")

    def plain(self, first: int, second: int = 2) -> int:
        return first + second

    def _deep(self) -> None:
        raise TypeError("a bug")


def shown(error: BaseException) -> list[str]:
    """The traceback below this test's own frame."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    return [line for line in lines if "^^^" not in line][3:]


def test_an_expected_error_has_one_frame_and_no_cause() -> None:
    with pytest.raises(redis.ConnectionError) as caught:
        Source().expected()
    where, _, text = shown(caught.value)
    assert where.endswith("in call")
    assert text == "redis.exceptions.ConnectionError: no server"


def test_an_error_of_an_iterator_is_short_too() -> None:
    rows = Source().rows(2)
    assert [next(rows), next(rows)] == [0, 1]
    with pytest.raises(PenstockError) as caught:
        next(rows)
    where, _, text = shown(caught.value)
    assert where.endswith("in _iterated")
    assert text == "penstock.errors.PenstockError: no more rows"


def test_an_unexpected_error_keeps_its_traceback() -> None:
    with pytest.raises(TypeError) as caught:
        Source().unexpected()
    assert any(line.endswith("in _deep") for line in shown(caught.value))


def test_spark_sees_the_same_signature_and_result() -> None:
    assert list(inspect.signature(Source.plain).parameters) == ["self", "first", "second"]
    assert Source().plain(1) == 3
