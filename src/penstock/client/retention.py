"""What a retention rule would remove from a stream now: PENSTOCK RETENTION, which changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.client.replies import Reply, blob, mapping, number

DIRECTIVE = "stream-retention"


@dataclass(frozen=True, slots=True)
class RetentionEffect:
    """What a rule removes. `held_by` is the group that has not acknowledged the next entries."""

    length: int
    size_bytes: int
    removed_entries: int
    removed_bytes: int
    first_kept: bytes | None
    held_by: bytes | None


def effect_words(name: bytes, options: Sequence[str]) -> tuple[str | bytes, ...]:
    """The command. `options` are those of a rule, without its pattern: age 7d acked yes."""
    return ("PENSTOCK", "RETENTION", name, *options)


def parse_effect(reply: Reply) -> RetentionEffect:
    """The reply of the command."""
    facts = mapping(reply)
    first_kept, holder = facts["first-kept"], facts["held-by"]
    return RetentionEffect(
        length=number(facts["length"]),
        size_bytes=number(facts["bytes"]),
        removed_entries=number(facts["removed-entries"]),
        removed_bytes=number(facts["removed-bytes"]),
        first_kept=None if first_kept is None else blob(first_kept),
        held_by=None if holder is None else blob(holder),
    )
