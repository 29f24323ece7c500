"""Listening sockets, and the check of each new connection (Door).

Sockets are opened here rather than by asyncio, because its errors do not name the address, and because an
optional address (`-::1`) may fail.
"""

from __future__ import annotations

import ipaddress
import os
import resource
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError
from penstock.server.log import LOG

if TYPE_CHECKING:
    from penstock.server.config.settings import Config
    from penstock.server.server import Server

_ALL = {"*": "0.0.0.0", "::*": "::"}
RESERVED_FILES = 32  # for listeners, logs and the event loop
_TOO_MANY = b"-ERR max number of clients reached\r\n"
_DENIED = (
    b"-DENIED Redis is running in protected mode because no password is set: this server, a penstock,"
    b" takes connections from its own machine only. To let others in, set a password (requirepass, or"
    b" CONFIG SET requirepass from this machine); or, if the network itself keeps strangers out, set"
    b" protected-mode no.\r\n"
)


@dataclass(slots=True)
class Sockets:
    """The listening sockets of a server. `plain`: without TLS, Unix sockets included. `metrics`: HTTP."""

    plain: list[socket.socket] = field(default_factory=list)
    tls: list[socket.socket] = field(default_factory=list)
    metrics: list[socket.socket] = field(default_factory=list)

    def descriptors(self) -> list[int]:
        """The file descriptors of all."""
        return [listening.fileno() for listening in (*self.plain, *self.tls, *self.metrics)]

    def close(self) -> None:
        """Close all."""
        for listening in (*self.plain, *self.tls, *self.metrics):
            listening.close()


def open_sockets(config: Config, any_port: bool = False) -> Sockets:
    """Open all sockets. Port 0 means no TCP, or with `any_port` a free port. Raises: ConfigError."""
    opened = Sockets()
    try:
        if config.value("port") or any_port:
            _open_tcp(config, "bind", config.value("port"), opened.plain)
        if config.value("tls-port"):
            _open_tcp(config, "bind", config.value("tls-port"), opened.tls)
        if config.value("metrics-port"):
            _open_tcp(config, "metrics-bind", config.value("metrics-port"), opened.metrics)
        if config.value("unixsocket"):
            opened.plain.append(_unix(config.value("unixsocket"), config))
    except ConfigError:
        opened.close()
        raise
    if not opened.plain and not opened.tls:
        opened.close()
        raise ConfigError("port 0, tls-port 0 and no unixsocket: no client could connect")
    return opened


def _open_tcp(config: Config, where: str, port: int, opened: list[socket.socket]) -> None:
    """Open a port on all addresses of the directive `where`."""
    for address in config.value(where):
        found = _tcp_or_none(address, port, config.value("tcp-backlog"))
        if found is not None:
            opened.append(found)
    if config.value(where) and not opened:
        raise ConfigError(f"{where}: cannot listen on any of the addresses")


def _tcp_or_none(address: str, port: int, backlog: int) -> socket.socket | None:
    """A listening socket; None if an optional address (with a dash in front) is unavailable."""
    optional = address.startswith("-")
    host = address.removeprefix("-")
    host = _ALL.get(host, host)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        _fail(f"bind {address}: {error.strerror or error}", optional)
        return None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(place)
        listening.listen(backlog)
    except OSError as error:
        listening.close()
        _fail(f"cannot listen on {shown_address(place)}: {error.strerror}", optional)
        return None
    listening.setblocking(False)
    return listening


def _fail(why: str, optional: bool) -> None:
    if not optional:
        raise ConfigError(why)
    LOG.debug("%s", why)


def _unix(path: str, config: Config) -> socket.socket:
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(path)
        if config.value("unixsocketperm"):
            Path(path).chmod(config.value("unixsocketperm"))
        listening.listen(config.value("tcp-backlog"))
    except OSError as error:
        listening.close()
        raise ConfigError(f"unixsocket {path}: {error.strerror or error}") from error
    listening.setblocking(False)
    return listening


def _remove_stale(path: str) -> None:
    """Remove a socket without a listener. Raises: ConfigError if there is one, or if it is another file."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):  # noqa: PTH116 - one call, one answer
            raise ConfigError(f"unixsocket {path}: the file exists and is not a socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
            return
        except OSError as error:
            raise ConfigError(f"unixsocket {path}: {error.strerror}") from error
    raise ConfigError(f"unixsocket {path}: another server listens on it")


def shown_address(place: Any) -> str:
    """An address as text: 127.0.0.1:6379, [::1]:6379 or the path of a Unix socket."""
    if not isinstance(place, tuple):
        return place.decode(errors="replace") if isinstance(place, bytes) else str(place)
    return f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"


def allow_clients(config: Config) -> None:
    """Raise the limit of open files for maxclients, or lower maxclients to it."""
    wanted = config.value("maxclients")
    allowed = clients_allowed(wanted)
    if allowed < wanted:
        config.values["maxclients"] = allowed
        LOG.warning(
            "maxclients is lowered to %d: the system allows no more open files (ulimit -n)", allowed
        )


def clients_allowed(wanted: int) -> int:
    """Raise the limit of open files; return how many of the wanted clients it allows."""
    files = wanted + RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= files:
        return wanted
    for limits in ((files, max(files, hard)), (min(files, hard), hard)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        except (OSError, ValueError):
            continue
        return max(1, limits[0] - RESERVED_FILES)
    return max(1, soft - RESERVED_FILES)


class Door:
    """Admits or refuses each new connection. `rejected` counts the refused ones."""

    def __init__(self, server: Server, config: Config) -> None:
        self._server = server
        self._config = config
        self.rejected = 0

    def reset_count(self) -> None:
        """CONFIG RESETSTAT."""
        self.rejected = 0

    def admits(self, transport: Any) -> bool:
        """Admit a connection, or send it an error and close it."""
        server = self._server
        refusal = b""
        if len(server.sessions) >= server.max_clients:
            refusal = _TOO_MANY
        elif self._is_protected() and not _is_local(transport.get_extra_info("peername")):
            refusal = _DENIED
        if refusal:
            self.rejected += 1
            transport.write(refusal)
            transport.close()
            return False
        self._keep_alive(transport.get_extra_info("socket"))
        return True

    def _is_protected(self) -> bool:
        return self._server.users.default.nopass and bool(self._config.value("protected-mode"))

    def _keep_alive(self, connected: Any) -> None:
        seconds = self._config.value("tcp-keepalive")
        if not seconds or connected is None or connected.family == socket.AF_UNIX:
            return
        # The client may be gone already, or the system may lack an option: ignore both.
        with suppress(OSError):
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_KEEPIDLE"):
                third = max(1, seconds // 3)  # three probes within that time
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, seconds)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, third)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


def _is_local(peer: Any) -> bool:
    """Tell whether a client is on this machine: a Unix socket or a loopback address."""
    if not isinstance(peer, tuple):
        return True
    address = ipaddress.ip_address(peer[0].split("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
