"""Name, library and addresses of a client."""

from __future__ import annotations


class ClientInfo:
    """For CLIENT LIST and the logs; it does not affect commands."""

    __slots__ = (
        "address",
        "created_ms",
        "fd",
        "is_tls",
        "library_name",
        "library_version",
        "local_address",
        "name",
        "no_evict",
        "no_touch",
        "on_unix_socket",
    )

    def __init__(self, now_ms: int) -> None:
        self.address = "?:0"
        self.local_address = "?:0"
        self.fd = -1
        self.on_unix_socket = False
        self.is_tls = False
        self.created_ms = now_ms
        self.name = b""
        self.library_name = b""
        self.library_version = b""
        self.no_evict = False
        self.no_touch = False


def is_printable(name: bytes) -> bool:
    """Tell whether a name fits into a line of CLIENT LIST: no spaces, only printable characters."""
    return all(33 <= char <= 126 for char in name)
