"""When a certificate expires. Python's ssl module does not tell that of a server's own certificate.

A certificate is nested DER: a tag, a length and the content.

    30 certificate
       30 the signed part
          a0 version, which may be missing
          02 serial number    30 algorithm    30 issuer
          30 validity
             17 not before    17 not after: YYMMDDhhmmssZ, or 18: YYYYMMDDhhmmssZ
"""

from __future__ import annotations

import calendar
import re
import ssl
import time
from pathlib import Path

_PEM = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _SHORT_TIME = 0xA0, 0x17
_BEFORE_VALIDITY = 3
_SHORT_YEARS_OF_1900 = "50"  # two digits from here on mean 19xx


def expiry_s_or_none(path: str) -> int | None:
    """The Unix time at which the first certificate of a file expires; None if it cannot be read."""
    try:
        found = _PEM.search(Path(path).read_text("latin-1"))
        return None if found is None else _expiry_s(ssl.PEM_cert_to_DER_cert(found[0]))
    except (OSError, ValueError, IndexError):
        return None


def _expiry_s(der: bytes) -> int:
    _, at, _ = _element(der, 0)
    _, at, _ = _element(der, at)
    tag, _, end = _element(der, at)
    at = end if tag == _VERSION else at
    for _ in range(_BEFORE_VALIDITY):
        _, _, at = _element(der, at)
    _, at, _ = _element(der, at)
    _, _, at = _element(der, at)
    tag, at, end = _element(der, at)
    text = der[at:end].decode("ascii")
    if tag == _SHORT_TIME:
        text = ("19" if text[:2] >= _SHORT_YEARS_OF_1900 else "20") + text
    return calendar.timegm(time.strptime(text, "%Y%m%d%H%M%SZ"))


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """The tag of an element, and where its content begins and ends. Raises: IndexError."""
    tag, size = der[at], der[at + 1]
    at += 2
    if size >= 0x80:  # the size takes this many bytes
        count = size - 0x80
        size = int.from_bytes(der[at : at + count], "big")
        at += count
    return tag, at, at + size
