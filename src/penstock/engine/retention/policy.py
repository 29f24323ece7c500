"""The rules of `stream-retention`: which streams are trimmed, and when.

    orders:* age 7d length 1m acked yes idle-group 30d   logs:* bytes 1gb
    pattern  options                                     the next rule

A rule ends where a word stands that is no option. The first rule whose pattern matches a stream's name holds.

Entries in `orders:delayed` wait for their time (PENSTOCK SEND), so `orders:*` is not about them: only a
pattern that itself ends in `:delayed` is.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.glob import Glob
from penstock.engine.retention.amounts import amount_or_none, ms_or_none, ms_text
from penstock.errors import CommandError

OPTIONS = ("age", "bytes", "length", "acked", "idle-group", "force")
_COUNT_MAX = 2**63 - 1
_DELAYED = ":delayed"


class Policy:
    """What happens to the streams of a pattern. A limit of None means that there is none."""

    __slots__ = (
        "_glob",
        "acked",
        "age_ms",
        "bytes_max",
        "force",
        "idle_group_ms",
        "length_max",
        "pattern",
    )

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.age_ms: int | None = None
        self.bytes_max: int | None = None
        self.length_max: int | None = None
        self.acked = False
        self.idle_group_ms: int | None = None
        self.force = False
        self._glob = Glob(pattern.encode(errors="surrogateescape"), False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self.text() == other.text()

    def __hash__(self) -> int:
        return hash(self.text())

    def matches(self, key: bytes) -> bool:
        """Tell whether this rule is about a stream."""
        if key.endswith(_DELAYED.encode()) and not self.pattern.endswith(_DELAYED):
            return False
        return self.pattern == "*" or self._glob.matches(key)

    def set(self, option: str, text: str) -> None:
        """Raises: CommandError if the value is bad."""
        if option == "age":
            self.age_ms = self._time(option, text)
        elif option == "idle-group":
            self.idle_group_ms = self._time(option, text)
        elif option == "bytes":
            self.bytes_max = self._amount(option, text)
        elif option == "length":
            self.length_max = self._amount(option, text)
        elif text.lower() not in ("yes", "no"):
            raise self._bad(option, text, "yes or no")
        elif option == "acked":
            self.acked = text.lower() == "yes"
        else:
            self.force = text.lower() == "yes"

    def text(self) -> str:
        """The rule as `parse_policies` reads it."""
        words = [self.pattern]
        if self.age_ms is not None:
            words += ["age", ms_text(self.age_ms)]
        if self.bytes_max is not None:
            words += ["bytes", str(self.bytes_max)]
        if self.length_max is not None:
            words += ["length", str(self.length_max)]
        if self.acked:
            words += ["acked", "yes"]
        if self.idle_group_ms is not None:
            words += ["idle-group", ms_text(self.idle_group_ms)]
        if self.force:
            words += ["force", "yes"]
        return " ".join(words)

    def check(self) -> None:
        """Raises: CommandError if the options do not go together."""
        has_limit = not (self.age_ms is None and self.bytes_max is None and self.length_max is None)
        if not has_limit and not self.acked:
            raise CommandError(
                f"retention of {self.pattern}: give at least one of age, bytes, length, acked yes"
            )
        if self.force and not has_limit:
            raise CommandError(
                f"retention of {self.pattern}: force needs a limit (age, bytes or length)"
            )
        if self.idle_group_ms is not None and not self.acked:
            raise CommandError(f"retention of {self.pattern}: idle-group needs acked yes")

    def _time(self, option: str, text: str) -> int:
        ms = ms_or_none(text)
        if ms is None or not 0 < ms <= _COUNT_MAX:
            raise self._bad(option, text, "a time such as 30s, 5m, 2h, 7d, 4w")
        return ms

    def _amount(self, option: str, text: str) -> int:
        amount = amount_or_none(text)
        if amount is None or amount > _COUNT_MAX:
            raise self._bad(option, text, "a number such as 1000, 1m, 64mb, 1gb")
        return amount

    def _bad(self, option: str, text: str, wanted: str) -> CommandError:
        return CommandError(
            f"retention of {self.pattern}: {option} must be {wanted}, not '{text[:40]}'"
        )


def parse_policies(words: Sequence[str]) -> tuple[Policy, ...]:
    """The rules in a list of words. Raises: CommandError."""
    found: list[Policy] = []
    at = 0
    while at < len(words):
        policy = Policy(words[at])
        at += 1
        given: set[str] = set()
        while at < len(words) and words[at].lower() in OPTIONS:
            option = words[at].lower()
            if option in given:
                raise CommandError(f"retention of {policy.pattern}: {option} is given twice")
            if at + 1 == len(words):
                raise CommandError(f"retention of {policy.pattern}: {option} has no value")
            given.add(option)
            policy.set(option, words[at + 1])
            at += 2
        if not given:
            raise CommandError(
                f"retention of {policy.pattern}: no options; they are {', '.join(OPTIONS)}"
            )
        policy.check()
        found.append(policy)
    return tuple(found)


def policy_of(policies: Sequence[Policy], key: bytes) -> Policy | None:
    """The rule that holds for a stream, or None."""
    for policy in policies:
        if policy.matches(key):
            return policy
    return None
