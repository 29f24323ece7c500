"""Walks over encoded replies: finds where each ends, and replaces them.

Used when a write could not be persisted after its reply was encoded. Each affected reply is replaced by an
error, so that a client that sent ten commands still gets ten replies.
"""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.wire.encoder import Encoder

_SIZED = b"$=!"
_NESTED = {ord("*"): 1, ord("~"): 1, ord(">"): 1, ord("%"): 2}
_PUSH = ord(">")


def end_of_reply(data: bytes, at: int) -> int:
    """The position after the reply that starts here."""
    left = 1
    while left:
        left -= 1
        line_end = data.index(b"\r\n", at)
        kind = data[at]
        if kind in _SIZED:
            size = int(data[at + 1 : line_end])
            at = line_end + 2 + (size + 2 if size >= 0 else 0)
        else:
            if kind in _NESTED:
                left += max(0, int(data[at + 1 : line_end])) * _NESTED[kind]
            at = line_end + 2
    return at


def refuse_all(data: bytes, error: PenstockError, spared: tuple[bytes, ...] = ()) -> bytes:
    """The same number of replies, all of them this error. Pushed messages stay.

    `spared`: first bytes of messages that are pushes although RESP2 does not mark them.
    """
    output = Encoder()
    at = 0
    while at < len(data):
        end = end_of_reply(data, at)
        if data[at] == _PUSH or data.startswith(spared, at):
            output.put_raw(data[at:end])
        else:
            output.put_error(error)
        at = end
    return output.take()
