"""Limits wrong passwords, per peer and in total.

A wrong password costs a second. During that second, further attempts of the same peer are refused unchecked.
That does not stop an attacker with many addresses, so at most AT_ONCE_MAX wrong attempts may wait at a time.
This limits the attempts per second in total. During such an attack nobody can log in; users who are logged in
are not affected.

A peer is an IPv4 address, or the first 64 bits of an IPv6 address, because one customer usually owns all
addresses with that prefix.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE_MAX = 8
_PREFIX_BITS = 64


class Guesses:
    """Peers that are waiting after a wrong password."""

    def __init__(self) -> None:
        self._paying: set[str] = set()

    def may_guess(self, peer: str) -> bool:
        """Whether an attempt of this peer is checked now."""
        return peer not in self._paying and len(self._paying) < AT_ONCE_MAX

    @contextmanager
    def paying(self, peer: str) -> Iterator[None]:
        """Refuse other attempts of the peer inside this context."""
        self._paying.add(peer)
        try:
            yield
        finally:
            self._paying.discard(peer)


def peer_of(address: str) -> str:
    """The peer of an address. Text that is not an address is returned unchanged."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    prefix = int(found) >> _PREFIX_BITS << _PREFIX_BITS  # drops a zone, as in fe80::1%eth0
    return str(ipaddress.IPv6Address(prefix))
