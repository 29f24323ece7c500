"""What a client said of itself, and where it comes from."""

from __future__ import annotations


class ClientInfo:
    """For CLIENT LIST and the logs; no command depends on it."""

    __slots__ = (
        "address",
        "created_ms",
        "fd",
        "last_command",
        "last_ms",
        "library_name",
        "library_version",
        "local_address",
        "name",
        "no_evict",
        "no_touch",
        "user",
    )

    def __init__(self, now_ms: int) -> None:
        self.address = "?:0"
        self.local_address = "?:0"
        self.fd = -1
        self.created_ms = now_ms
        self.last_ms = now_ms
        self.last_command = "NULL"
        self.name = b""
        self.library_name = b""
        self.library_version = b""
        self.user = "default"
        self.no_evict = False
        self.no_touch = False
