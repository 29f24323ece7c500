"""Parses server URLs. The terminal, dashboard and Spark use it.

    redis://host:port/db, rediss://..., unix://path     one server
    redis+sentinel://host:port,host:port/name/db        the primary that Sentinels name, also after a failover
    rediss+sentinel://...                               the same, with TLS to the Sentinels and to the primary

The query of the last two may have `sentinel_username` and `sentinel_password`, if the Sentinels ask for a
login of their own, and `sentinel_tls=no` or `yes` if they differ from the servers.

Error texts never quote the URL, because a password may be in the wrong place: in redis://:pass/word@host, a
parser takes `pass` for a port and would print it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.connection import SSLConnection, UnixDomainSocketConnection
from redis.connection import parse_url as parse_redis_url
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from penstock.client.bounded_replies import BoundedParser
from penstock.errors import PenstockError

URL_FORMS = (
    "redis://[user:password@]host:port/db, rediss://..., unix://path or"
    " redis+sentinel://[user:password@]host:port,host:port/name"
)
PORT_DEFAULT = 6379
SENTINEL_PORT_DEFAULT = 26379

# redis-py's own limit is 100, and a worker has a connection for each stream. The server has a limit, too.
CONNECTIONS_MAX = 1 << 31
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
    sentinels: tuple[tuple[str, int], ...] = ()  # those that name the server, if any
    sentinel_settings: dict[str, Any] = field(default_factory=dict, repr=False, hash=False)

    @property
    def database(self) -> int:
        """The number of the database."""
        return int(self.settings.get("db", 0))

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, for redis:// and rediss://."""
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
        settings.setdefault("max_connections", CONNECTIONS_MAX)
        if self.sentinels:
            return _ready(self._pool_of_primary(settings))
        if self.is_unix:
            settings["connection_class"] = UnixDomainSocketConnection
        elif self.is_tls:
            settings["connection_class"] = SSLConnection
        return _ready(redis.ConnectionPool(**settings))

    def asking_sentinels(self, limits: dict[str, Any]) -> dict[str, Any]:
        """Arguments of redis-py's clients of the Sentinels."""
        return {**limits, **self.sentinel_settings, "protocol": 2}

    def _pool_of_primary(self, settings: dict[str, Any]) -> redis.ConnectionPool:
        """Connections that each ask the Sentinels for the primary when they are opened."""
        limits = {name: settings[name] for name in ("socket_timeout", "socket_connect_timeout")}
        manager = Sentinel(  # type: ignore[no-untyped-call]
            list(self.sentinels), sentinel_kwargs=self.asking_sentinels(limits), **limits
        )
        settings["ssl"] = self.is_tls
        return SentinelConnectionPool(self.name, manager, **settings)  # type: ignore[no-untyped-call]


def _ready(pool: redis.ConnectionPool) -> redis.Redis:
    client = redis.Redis(connection_pool=pool)
    client.auto_close_connection_pool = True
    client.response_callbacks.clear()
    return client


def split_urls(text: str) -> list[str]:
    """The URLs of a list. A comma separates two only before a scheme: a URL may list Sentinels."""
    return re.split(r",\s*(?=[a-z+]+://)", text.strip())


def parse_url(url: str, username: str = "", password: str = "") -> ServerUrl:
    """Parse a URL. `username` and `password` apply if the URL has none. Raises: BadUrl."""
    if url.startswith(("redis+sentinel://", "rediss+sentinel://")):
        return _parse_sentinels(url, username, password)
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


_SENTINELS = re.compile(
    r"(?P<scheme>rediss?)\+sentinel://(?:(?P<login>[^@/]*)@)?(?P<hosts>[^@/]+)/(?P<name>[^/?#@]+)"
    r"(?P<rest>(?:/\d*)?(?:\?[^#@]*)?)"
)


def _parse_sentinels(url: str, username: str, password: str) -> ServerUrl:
    """The primary with a name. Everything but the hosts is read as in a URL of one server. Raises: BadUrl."""
    found = _SENTINELS.fullmatch(url)
    if found is None:
        raise BadUrl(URL_FORMS)
    login = "" if found["login"] is None else found["login"] + "@"
    path, _, query = found["rest"].partition("?")
    own = dict(parse_qsl("&".join(_of_sentinels(query, True)), keep_blank_values=True))
    rest = "&".join(_of_sentinels(query, False))
    plain = parse_url(f"{found['scheme']}://{login}localhost{path}?{rest}", username, password)
    sentinels = []
    for host in found["hosts"].split(","):
        try:
            parts = urlsplit(f"//{host}")
            port = parts.port or SENTINEL_PORT_DEFAULT
        except ValueError:
            raise BadUrl(URL_FORMS) from None
        if not parts.hostname:
            raise BadUrl(URL_FORMS)
        sentinels.append((parts.hostname, port))
    settings = {key: value for key, value in plain.settings.items() if key not in ("host", "port")}
    label = f"{found['name']}/{plain.database}"
    of_sentinels = _sentinel_settings(own, plain)
    return ServerUrl(label, False, plain.is_tls, settings, tuple(sentinels), of_sentinels)


def _of_sentinels(query: str, wanted: bool) -> list[str]:
    """The parts of a query that are about the Sentinels, or the others."""
    return [part for part in query.split("&") if part.startswith("sentinel_") == wanted]


def _sentinel_settings(own: dict[str, str], plain: ServerUrl) -> dict[str, Any]:
    """How to log in to the Sentinels. Raises: BadUrl."""
    tls = own.pop("sentinel_tls", "yes" if plain.is_tls else "no")
    login = {name: own.pop(f"sentinel_{name}", "") for name in ("username", "password")}
    if own or tls not in ("yes", "no"):
        raise BadUrl("sentinel_username, sentinel_password and sentinel_tls=yes or no in the query")
    settings: dict[str, Any] = {name: value for name, value in login.items() if value}
    if tls == "yes":
        certificates = {
            key: value for key, value in plain.settings.items() if key.startswith("ssl")
        }
        settings |= {"ssl": True, **certificates}
    return settings
