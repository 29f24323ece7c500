"""The keys beside a stream, and the name of a worker."""

from __future__ import annotations

import os
import secrets
import socket
import zlib


def dead_key(stream: str) -> str:
    """The stream of the dead letters."""
    return f"{stream}:dead"


def delayed_key(stream: str) -> str:
    """The stream in which delayed entries wait."""
    return f"{stream}:delayed"


def owner_key(stream: str, group: str) -> str:
    """The string that names the owner of a keyed stream."""
    return f"{stream}:owner:{group}"


def asks_key(stream: str, group: str) -> str:
    """The string in which a worker asks for a partition."""
    return f"{stream}:asks:{group}"


def mark_key(stream: str, name: str) -> str:
    """The string that exists while a dedup name is in use."""
    return f"{stream}:sent:{name}"


def consumer_name() -> str:
    """A name that no other worker has or had: host, process, random."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def partition(stream: str, key: str, partitions: int) -> str:
    """The stream of a key; the same on every machine."""
    return f"{stream}:{zlib.crc32(key.encode()) % partitions}"
