"""The servers of a source or sink: the options `url`, `username`, `password` and `cluster`."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.client.address import URL_FORMS, BadUrl, ServerUrl, parse_url, split_urls
from penstock.spark.option_reader import OptionError, OptionReader

CONNECTION = ("url", "username", "password", "cluster")


@dataclass(frozen=True, slots=True)
class Place:
    """One or more independent servers, or the nodes of one Redis Cluster."""

    servers: tuple[ServerUrl, ...]
    cluster: bool = False


def parse_place(reader: OptionReader) -> Place:
    """Read the four options. Raises: OptionError."""
    text = reader.required("url", URL_FORMS)
    login = (reader.text("username"), reader.text("password"))
    try:
        servers = tuple(parse_url(part, *login) for part in split_urls(text))
    except BadUrl as error:
        raise OptionError("url", "", str(error)) from None
    cluster = reader.boolean("cluster", False)
    if cluster and any(one.is_unix or one.database or one.sentinels for one in servers):
        raise OptionError("url", text, "redis:// or rediss:// and database 0 for a cluster")
    if not cluster and len({server.label for server in servers}) < len(servers):
        raise OptionError("url", text, "each server once")
    return Place(servers, cluster)
