"""Hosts of this machine, against DNS rebinding.

A web page can make its own host name resolve to 127.0.0.1, and read through the user's browser what listens
there without a password. Such a request has that name as its Host header.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a Host header names the loopback interface."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
