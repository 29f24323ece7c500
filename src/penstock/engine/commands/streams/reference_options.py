"""What happens to the pending records of an entry that is removed: KEEPREF, DELREF, ACKED.

KEEPREF    they stay (the default)
DELREF     they are removed from all groups
ACKED      the entry is removed only if no group needs it any more (core/groups/references.py)
"""

from __future__ import annotations

from penstock.core.frame import Frame

NO_OPTION = 0
KEEP = 1
DELETE = 2
IF_ACKED = 3


def option_at(frame: Frame, at: int) -> int:
    """The option in a word of a frame, or NO_OPTION."""
    if frame.is_word(at, b"KEEPREF"):
        return KEEP
    if frame.is_word(at, b"DELREF"):
        return DELETE
    if frame.is_word(at, b"ACKED"):
        return IF_ACKED
    return NO_OPTION
