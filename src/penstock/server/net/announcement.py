"""The log lines at start that tell users how to connect, and what protects the server."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

from penstock.server.config.settings import Config
from penstock.server.net.listener import Sockets

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


def client_urls(sockets: Sockets, has_password: bool) -> list[str]:
    """The URLs that clients on this machine connect with; a password is never shown."""
    login = ":PASSWORD@" if has_password else ""
    urls = []
    schemes = [("redis", listening) for listening in sockets.plain]
    schemes += [("rediss", listening) for listening in sockets.tls]
    for scheme, listening in schemes:
        place = listening.getsockname()
        if isinstance(place, tuple):
            host = _WILDCARDS.get(place[0]) or (f"[{place[0]}]" if ":" in place[0] else place[0])
            urls.append(f"{scheme}://{login}{host}:{place[1]}")
        else:
            path = place.decode(errors="replace") if isinstance(place, bytes) else str(place)
            urls.append(f"unix://{login}{path}")
    return list(dict.fromkeys(urls))


def exposure_or_none(sockets: Sequence[socket.socket], config: Config) -> str | None:
    """A warning for a server without a password, if other machines can reach a socket; or None."""
    places = [listening.getsockname() for listening in sockets]
    hosts = [place[0] for place in places if isinstance(place, tuple)]
    open_hosts = [
        host for host in hosts if not ipaddress.ip_address(host.split("%")[0]).is_loopback
    ]
    if not open_hosts:
        return None
    shown = ", ".join(open_hosts)
    if config.value("protected-mode"):
        return (
            f"no password is set: protected-mode refuses other machines, although the server listens on"
            f" {shown}. Set requirepass to let them in"
        )
    return (
        f"NO PASSWORD IS SET and protected-mode is off: every machine that can reach {shown} can read and"
        " change all data. Set requirepass"
    )
