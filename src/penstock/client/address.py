"""Parses server URLs: redis://, rediss:// and unix://. The terminal, dashboard and Spark use it.

Error texts never quote the URL, because a password may be in the wrong place: in redis://:pass/word@host, a
parser takes `pass` for a port and would print it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.connection import SSLConnection, UnixDomainSocketConnection
from redis.connection import parse_url as parse_redis_url
from redis.retry import Retry

from penstock.client.bounded_replies import BoundedParser
from penstock.errors import PenstockError

URL_FORMS = "redis://[user:password@]host:port/db, rediss://... or unix://path"
PORT_DEFAULT = 6379

# Settings that a URL must not change.
_FIXED = {"protocol": 2, "decode_responses": False}


class BadUrl(PenstockError):
    """The URL cannot be used. The text says what is expected and does not quote the URL."""


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """Where a server is and how to log in. `label` identifies it without any secret."""

    label: str
    is_unix: bool
    is_tls: bool
    settings: dict[str, Any] = field(repr=False, hash=False)  # arguments of redis-py's connections

    @property
    def database(self) -> int:
        """The number of the database."""
        return int(self.settings.get("db", 0))

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.settings["host"], self.settings["port"]

    @property
    def name(self) -> str:
        """The server without its database: host:port, or the path of its socket."""
        return self.label.rpartition("/")[0]

    def client_settings(self, connect_seconds: float, reply_seconds: float) -> dict[str, Any]:
        """The settings with time limits. A connect limit in the URL wins; a reply limit does not."""
        limits = {"socket_timeout": reply_seconds}
        return {"socket_connect_timeout": connect_seconds, **self.settings, **_FIXED, **limits}

    def connect(self, connect_seconds: float, reply_seconds: float) -> redis.Redis:
        """A client that connects on first use, never retries and returns replies as RESP2 carries them.

        It does not send CLIENT SETINFO, which would cost every Spark worker two round trips.
        """
        settings = self.client_settings(connect_seconds, reply_seconds)
        settings |= {"retry": Retry(NoBackoff(), 0), "driver_info": None}
        settings["parser_class"] = BoundedParser
        if self.is_unix:
            settings["connection_class"] = UnixDomainSocketConnection
        elif self.is_tls:
            settings["connection_class"] = SSLConnection
        client = redis.Redis(connection_pool=redis.ConnectionPool(**settings))
        client.auto_close_connection_pool = True
        client.response_callbacks.clear()
        return client


def parse_url(url: str, username: str = "", password: str = "") -> ServerUrl:
    """Parse a URL. `username` and `password` apply if the URL has none. Raises: BadUrl."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme
        if scheme not in ("redis", "rediss", "unix"):
            raise BadUrl(URL_FORMS)
        if scheme != "unix" and "@" in parts.path + parts.query + parts.fragment:
            raise BadUrl("/ ? # and @ inside a password as %2F %3F %23 and %40")
        if scheme != "unix" and not re.fullmatch(r"/?\d*", parts.path, re.ASCII):
            raise BadUrl("the number of a database after the port: /0")
        settings: dict[str, Any] = dict(parse_redis_url(url))  # type: ignore[no-untyped-call]
    except (ValueError, TypeError):
        raise BadUrl(URL_FORMS) from None
    settings.pop("connection_class", None)
    if password:
        settings.setdefault("password", password)
    if username:
        settings.setdefault("username", username)
    if scheme != "unix":
        settings.setdefault("host", "127.0.0.1")
        settings.setdefault("port", PORT_DEFAULT)
    name = (
        settings.get("path", "") if scheme == "unix" else f"{settings['host']}:{settings['port']}"
    )
    made = ServerUrl(
        f"{name}/{int(settings.get('db', 0))}", scheme == "unix", scheme == "rediss", settings
    )
    try:
        made.connect(
            1, 1
        ).connection_pool.make_connection()  # does not connect; checks every option
    except (ValueError, TypeError, redis.RedisError):
        raise BadUrl(URL_FORMS) from None
    return made
