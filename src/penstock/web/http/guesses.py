"""How often a password may be guessed: one wrong guess at a time for each peer, a few for all together.

A wrong guess costs a second. During that second no other guess of the same peer is looked at. That alone does
not stop somebody with many addresses, so at most AT_ONCE_MAX wrong guesses may be waiting at a time: that
limits the guesses per second of everybody together. During such an attack nobody can log in; who is logged
in already notices nothing.

A peer is an address. Of IPv6 it is the first 64 bits, since one line usually owns all addresses behind them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE_MAX = 8
_LINE_BITS = 64


class Guesses:
    """The wrong guesses that are being paid for."""

    def __init__(self) -> None:
        self._paying: set[str] = set()

    def may_guess(self, peer: str) -> bool:
        """Whether a guess of this peer is looked at now."""
        return peer not in self._paying and len(self._paying) < AT_ONCE_MAX

    @contextmanager
    def paying(self, peer: str) -> Iterator[None]:
        """Inside of it, the peer pays for a wrong guess."""
        self._paying.add(peer)
        try:
            yield
        finally:
            self._paying.discard(peer)


def peer_of(address: str) -> str:
    """Who is behind an address; a text that is no address stands for itself."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    line = int(found) >> _LINE_BITS << _LINE_BITS  # a zone, as in fe80::1%eth0, is left out
    return str(ipaddress.IPv6Address(line))
