"""One server's URL: read once, connected to anywhere, its password shown nowhere.

No text made here quotes the URL: a password may stand where it does not belong, as in
redis://:pass/word@host.
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
from penstock.spark.option_words import OptionError

URL_FORMS = "redis://[user:password@]host:port/db, rediss://... or unix://path, several by commas"
CONNECT_SECONDS_MAX = 10
REPLY_SECONDS_MAX = 120  # a page of large entries from a busy server
PORT_DEFAULT = 6379


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """Where a server is and how to log in; `label` tells it from others without any secret."""

    label: str
    is_unix: bool
    is_tls: bool
    settings: dict[str, Any] = field(repr=False, hash=False)

    @property
    def database(self) -> int:
        """The number of the database."""
        return int(self.settings.get("db", 0))

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.settings["host"], self.settings["port"]

    def client_settings(self) -> dict[str, Any]:
        """What redis-py is told, beside where the server is."""
        # The code relies on these, whatever the URL says; retries are Spark's.
        return {
            "socket_connect_timeout": CONNECT_SECONDS_MAX,
            **self.settings,
            "socket_timeout": REPLY_SECONDS_MAX,
            "protocol": 2,
            "decode_responses": False,
        }

    def connect(self) -> redis.Redis:
        """A client; its connection is made when it is first used."""
        # A worker connects for every partition: without CLIENT SETINFO that is two round trips less, and no
        # look at redis-py's metadata, which takes 4 ms.
        settings = self.client_settings() | {"retry": Retry(NoBackoff(), 0), "driver_info": None}
        settings["parser_class"] = BoundedParser
        if self.is_unix:
            settings["connection_class"] = UnixDomainSocketConnection
        elif self.is_tls:
            settings["connection_class"] = SSLConnection
        pool = redis.ConnectionPool(**settings)
        client = redis.Redis(connection_pool=pool)
        client.auto_close_connection_pool = True
        client.response_callbacks.clear()
        return client


def parse_url(url: str, username: str = "", password: str = "") -> ServerUrl:
    """Read a URL; the login is for one that names none. Raises: OptionError."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme
        if scheme not in ("redis", "rediss", "unix"):
            raise OptionError("url", "", URL_FORMS)
        if scheme != "unix" and "@" in parts.path + parts.query + parts.fragment:
            raise OptionError("url", "", "/ ? # and @ inside a password as %2F %3F %23 and %40")
        if scheme != "unix" and not re.fullmatch(r"/?\d*", parts.path, re.ASCII):
            raise OptionError("url", "", "the number of a database behind the port: /0")
        settings: dict[str, Any] = dict(parse_redis_url(url))  # type: ignore[no-untyped-call]
    except (ValueError, TypeError):
        raise OptionError("url", "", URL_FORMS) from None
    settings.pop("connection_class", None)
    if password:
        settings.setdefault("password", password)
    if username:
        settings.setdefault("username", username)
    database = int(settings.get("db", 0))
    if scheme == "unix":
        label = f"{settings.get('path', '')}/{database}"
    else:
        settings.setdefault("host", "127.0.0.1")
        settings.setdefault("port", PORT_DEFAULT)
        label = f"{settings['host']}:{settings['port']}/{database}"
    made = ServerUrl(label, scheme == "unix", scheme == "rediss", settings)
    try:
        made.connect().connection_pool.make_connection()  # every option of the URL is looked at
    except (ValueError, TypeError, redis.RedisError):
        raise OptionError("url", "", URL_FORMS) from None
    return made
