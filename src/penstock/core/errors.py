"""The exceptions of core: a structure refuses a change, or a text is not an id.

The structure is as it was before the call. These exceptions carry no protocol codes: engine/wording.py turns
them into Redis's error replies. Damaged bytes raise CorruptData, a broken invariant raises InvariantBroken
(both in penstock.errors).
"""

from __future__ import annotations

from penstock.errors import PenstockError


class CoreError(PenstockError):
    """The base class of this module's exceptions."""


class InvalidID(CoreError):
    """A text is not a stream id."""


class NoIDAbove(CoreError):
    """A range starts after the largest id."""


class NoIDBelow(CoreError):
    """A range ends before the smallest id."""


class IDNotAboveLast(CoreError):
    """A new entry's id is not above the last id of its stream."""


class IDsExhausted(CoreError):
    """The stream's last id is the largest one, so no entry can be added."""


class TooLarge(CoreError):
    """An entry or an element is larger than its structure can hold."""
