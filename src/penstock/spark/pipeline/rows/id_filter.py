"""Compares the column `_id` with positions of the source, as numbers: as text, 10 would come before 9."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock.core.stream_id import parse

_HALF = "decimal(20,0)"  # 64 bits without a sign


def is_up_to(position: Mapping[str, str]) -> Column:
    """Whether a row is at or before a position."""
    ms, seq = (id_half(number).cast(_HALF) for number in (0, 1))
    found = F.lit(False)
    for name, text in position.items():
        at = parse(text.encode())
        until_ms, until_seq = (F.lit(str(half)).cast(_HALF) for half in (at.ms, at.seq))
        is_before = (ms < until_ms) | ((ms == until_ms) & (seq <= until_seq))
        found = found | ((F.col("_stream") == name) & is_before)
    return found


def between(rows: DataFrame, since: Mapping[str, str], until: Mapping[str, str]) -> DataFrame:
    """The rows after one position up to another."""
    found = rows.where(is_up_to(until))
    return found.where(~is_up_to(since)) if since else found


def id_half(number: int) -> Column:
    """One half of the id, as text."""
    return F.get(F.split("_id", "-"), F.lit(number))
