"""What a retention rule would remove from a stream. Nothing is changed. Only penstock has retention."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.client.replies import array, blob
from penstock.client.retention import DIRECTIVE, RetentionEffect, effect_words, parse_effect
from penstock.engine.retention.policy import OPTIONS, Policy, parse_policies, policy_of
from penstock.errors import CommandError
from penstock.human.show import harmless
from penstock.web.refusal import Refused
from penstock.web.server.asking import ServerClient

YES_OR_NO = ("acked", "force")
NO_RETENTION = "this server has no retention: it is not a penstock server"
NO_PATTERN = f"{DIRECTIVE} cannot hold this name: choose a pattern for the rule yourself"
QUOTES = frozenset("\"'")
_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """The options of a rule, without its pattern: {"age": "7d", "acked": "yes"}."""

    options: Mapping[str, str]

    @property
    def words(self) -> list[str]:
        """The options in the order of the docs, as a setting has them."""
        return [word for name in OPTIONS if self.options.get(name) for word in self._pair(name)]

    def _pair(self, name: str) -> tuple[str, str]:
        return name, self.options[name]


def parse_rule(text: str) -> RetentionRule:
    """The rule in `age 7d acked yes`. Raises: Refused."""
    words = text.split()
    if not words:
        return RetentionRule({})
    found = _policies(["*", *words])
    if len(found) != 1:
        raise Refused(f"{found[1].pattern} is no option of a rule; they are {', '.join(OPTIONS)}")
    shown = found[0].text().split()[1:]
    return RetentionRule(dict(zip(shown[::2], shown[1::2], strict=True)))


async def rule_of_server(server: ServerClient, name: bytes) -> RetentionRule | None:
    """The rule of the server's setting for a stream. Raises: Refused if the server has no retention."""
    found = array(await server.ask("CONFIG", "GET", DIRECTIVE))
    if len(found) != 2:
        raise Refused(NO_RETENTION)
    words = blob(found[1]).decode(errors="surrogateescape").split()
    policy = policy_of(_policies(words), name)
    return None if policy is None else parse_rule(" ".join(policy.text().split()[1:]))


def pattern_of(name: bytes) -> str:
    """The pattern that matches only this name. Raises: Refused if the setting cannot hold it.

    A set, as in `a[*]`, means the same within quotes, where a backslash would be lost.
    """
    text = name.decode(errors="surrogateescape")
    if text.split() != [text] or harmless(text) != text or QUOTES & set(text):
        raise Refused(NO_PATTERN)
    if text.lower() in OPTIONS:
        return f"[{text[0]}]{text[1:]}"
    return _MAGIC.sub(lambda found: f"[{found[0]}]", text.replace("\\", "\\\\"))


async def effect_of(server: ServerClient, name: bytes, rule: RetentionRule) -> RetentionEffect:
    """What a rule would remove now. Raises: Refused, ServerUnreachable."""
    return parse_effect(await server.ask(*effect_words(name, rule.words)))


def _policies(words: Sequence[str]) -> tuple[Policy, ...]:
    try:
        return parse_policies(words)
    except CommandError as error:
        raise Refused(str(error)) from None
