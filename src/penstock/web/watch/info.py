"""The reply of INFO as fields, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.client.replies import Reply, blob

Info = Mapping[str, str]


def parse_info(reply: Reply) -> Info:
    """`name:value` lines. Others are ignored."""
    lines = blob(reply).decode("utf-8", "backslashreplace").splitlines()
    pairs = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}


def number_of(info: Info, name: str) -> float | None:
    """A field as a number, or None if it is missing or something else."""
    try:
        value = float(info[name])
    except (KeyError, ValueError):
        return None
    return value if abs(value) < float("inf") else None


def share_of(info: Info, part: str, whole: str) -> float | None:
    """A field as a share of another, or None if there is no limit."""
    used, limit = number_of(info, part), number_of(info, whole)
    return used / limit if used is not None and limit else None


def parts_of(value: str) -> dict[str, str]:
    """`ip=10.0.0.7,port=6379,lag=1` as a dict."""
    pairs = (part.partition("=") for part in value.split(","))
    return {name: found for name, equals, found in pairs if equals}
