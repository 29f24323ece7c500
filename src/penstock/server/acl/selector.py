"""A selector: rules that allow commands, keys, channels and consumer groups.

    +@read -get ~orders:* %R~log &news.* %G~billing

Rules are applied from left to right; a later rule changes what earlier ones have set. A user has one selector
of its own and may have more, in parentheses. A command is allowed if one selector alone allows all of it: the
command itself, every key, every channel and the group.

Commands are stored as a set of names (`xgroup|create`), and the rules are kept as a text for ACL LIST.

Consumer groups are not in Redis. `%G~pattern` limits the commands that name a group to the groups that match.
Without such a rule every group is allowed, so that rules written for Redis keep their meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.engine.table import NEEDS_READ, NEEDS_WRITE
from penstock.errors import PenstockError
from penstock.server.acl.foreign_commands import is_foreign
from penstock.server.command_catalogue import CATEGORIES, Catalogue
from penstock.wire.parser import split_words

_ALL_NEEDS = NEEDS_READ | NEEDS_WRITE
_LETTERS = {ord("R"): NEEDS_READ, ord("W"): NEEDS_WRITE}


class RuleError(PenstockError):
    """A rule that cannot be applied; the text says why."""


def syntax() -> RuleError:
    return RuleError("Syntax error")


class UnknownName(RuleError):
    """A rule names a command or a category that does not exist."""

    def __init__(self) -> None:
        super().__init__("Unknown command or category name in ACL")


@dataclass(slots=True)
class Selector:
    """The rules of one selector.

    keys          pattern -> what it allows: NEEDS_READ, NEEDS_WRITE or both; all_keys: no limit
    channels      patterns; all_channels: no limit
    groups        patterns; None: no limit
    commands      the names of the allowed commands
    first_words   command -> first arguments with which it is allowed although it is not in `commands`
    newer         commands of later versions are allowed as well: +@all
    rules         the rules about commands since the last +@all or -@all, such as +get
    """

    keys: dict[bytes, int] = field(default_factory=dict)
    all_keys: bool = False
    channels: dict[bytes, None] = field(default_factory=dict)
    all_channels: bool = False
    groups: dict[bytes, None] | None = None
    commands: set[str] = field(default_factory=set)
    first_words: dict[str, list[bytes]] = field(default_factory=dict)
    newer: bool = False
    rules: list[str] = field(default_factory=list)

    def copy(self) -> Selector:
        """A selector with the same rules."""
        return Selector(
            dict(self.keys),
            self.all_keys,
            dict(self.channels),
            self.all_channels,
            None if self.groups is None else dict(self.groups),
            set(self.commands),
            {name: list(words) for name, words in self.first_words.items()},
            self.newer,
            list(self.rules),
        )

    # --- Rules -------------------------------------------------------------------------------------

    def apply(self, rule: bytes, catalogue: Catalogue) -> None:
        """Apply one rule. Raises: RuleError; nothing has changed then."""
        word = rule.lower()
        if word in _WORDS:
            word = _WORDS[word]
        if word in (b"+@all", b"-@all"):
            self._set_all(word == b"+@all", catalogue)
        elif word == b"~*":
            self.keys, self.all_keys = {}, True
        elif word == b"resetkeys":
            self.keys, self.all_keys = {}, False
        elif word == b"&*":
            self.channels, self.all_channels = {}, True
        elif word == b"resetchannels":
            self.channels, self.all_channels = {}, False
        elif word == b"allgroups":
            self.groups = None
        elif word == b"resetgroups":
            self.groups = {}
        elif word.startswith(b"%g~"):
            self._add_group(rule[3:])
        elif rule[:1] in (b"~", b"%"):
            self._add_key(rule)
        elif rule[:1] == b"&":
            self._add_channel(rule[1:])
        elif word[:2] in (b"+@", b"-@"):
            self._set_category(word.decode("latin-1"), catalogue)
        elif word[:1] in (b"+", b"-"):
            self._set_command(word.decode("latin-1"), catalogue)
        else:
            raise syntax()

    def _add_key(self, rule: bytes) -> None:
        if self.all_keys:
            raise RuleError(
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have"
                " any effect. Try 'resetkeys' to start with an empty list of patterns"
            )
        need, pattern = _ALL_NEEDS, rule[1:]
        if rule[:1] == b"%":
            letters, _, pattern = rule[1:].partition(b"~")
            need = 0
            for letter in letters.upper():
                bit = _LETTERS.get(letter, 0)
                if not bit or need & bit:
                    raise syntax()
                need |= bit
            if not need:
                raise syntax()
        _check_pattern(pattern)
        self.keys[pattern] = self.keys.get(pattern, 0) | need

    def _add_channel(self, pattern: bytes) -> None:
        if self.all_channels:
            raise RuleError(
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not"
                " have any effect. Try 'resetchannels' to start with an empty list of channels"
            )
        _check_pattern(pattern)
        self.channels[pattern] = None

    def _add_group(self, pattern: bytes) -> None:
        _check_pattern(pattern)
        self.groups = {} if self.groups is None else self.groups
        self.groups[pattern] = None

    def _set_all(self, allowed: bool, catalogue: Catalogue) -> None:
        self.commands = set(catalogue.all_names()) if allowed else set()
        self.newer = allowed
        self.first_words = {}
        self.rules = []

    def _set_category(self, rule: str, catalogue: Catalogue) -> None:
        if rule[2:] not in CATEGORIES:
            raise UnknownName
        for name in catalogue.in_category(rule[2:]):
            self._set(name, rule[0] == "+", catalogue)
        self._note(rule)

    def _set_command(self, rule: str, catalogue: Catalogue) -> None:
        name = rule[1:]
        if is_foreign(name) and not catalogue.knows(name):
            self._note(rule)
            return
        container, _, word = name.rpartition("|")
        if rule[0] == "+" and "|" in name:
            if not catalogue.knows(container):
                raise UnknownName
            if "|" in container:
                raise RuleError("Allowing first-arg of a subcommand is not supported")
            if not word:
                raise syntax()
            if not catalogue.is_container(container):
                self._allow_first_word(container, word.encode("latin-1"))
                self._note(rule)
                return
        if not catalogue.knows(name):
            raise UnknownName
        self._set(name, rule[0] == "+", catalogue)
        self._note(rule)

    def _allow_first_word(self, name: str, word: bytes) -> None:
        words = self.first_words.setdefault(name, [])
        if word not in words:
            words.append(word)

    def _set(self, name: str, allowed: bool, catalogue: Catalogue) -> None:
        """Allow or forbid a command with all its subcommands."""
        for covered in catalogue.covered(name):
            self.first_words.pop(covered, None)
            if allowed:
                self.commands.add(covered)
            else:
                self.commands.discard(covered)

    def _note(self, rule: str) -> None:
        """Keep the text of a rule. It replaces earlier rules about the same command or its subcommands."""
        name = rule[1:]
        self.rules = [
            kept for kept in self.rules if kept[1:] != name and not kept[1:].startswith(f"{name}|")
        ]
        self.rules.append(rule)

    # --- Texts -------------------------------------------------------------------------------------

    def allows_all(self, catalogue: Catalogue) -> bool:
        """Tell whether nothing is forbidden."""
        has_all = self.newer and len(self.commands) == len(set(catalogue.all_names()))
        return has_all and self.all_keys and self.all_channels and self.groups is None

    def commands_text(self) -> bytes:
        """The rules about commands."""
        return " ".join(["+@all" if self.newer else "-@all", *self.rules]).encode("latin-1")

    def keys_text(self) -> bytes:
        """The rules about keys."""
        if self.all_keys:
            return b"~*"
        return b" ".join(_KEY_MARKS[need] + pattern for pattern, need in self.keys.items())

    def channels_text(self) -> bytes:
        """The rules about channels."""
        return b"&*" if self.all_channels else b" ".join(b"&" + name for name in self.channels)

    def groups_text(self) -> bytes:
        """The rules about consumer groups; empty if all are allowed."""
        if self.groups is None:
            return b""
        return b" ".join(b"%G~" + pattern for pattern in self.groups) or b"resetgroups"

    def text(self) -> bytes:
        """All rules, as a file has them."""
        channels = self.channels_text() if self.all_channels else b"resetchannels"
        if self.channels:
            channels += b" " + self.channels_text()
        parts = [self.keys_text(), channels, self.groups_text(), self.commands_text()]
        return b" ".join(part for part in parts if part)


_WORDS = {
    b"allcommands": b"+@all",
    b"nocommands": b"-@all",
    b"allkeys": b"~*",
    b"allchannels": b"&*",
}
_KEY_MARKS = {NEEDS_READ: b"%R~", NEEDS_WRITE: b"%W~", _ALL_NEEDS: b"~"}


def _check_pattern(pattern: bytes) -> None:
    if any(char in b" \t\n\v\f\r\0" for char in pattern):
        raise syntax()


def parse_selector(text: bytes, all_channels: bool, catalogue: Catalogue) -> Selector:
    """The selector of a text without its parentheses. Raises: RuleError."""
    made = Selector(all_channels=all_channels)
    for rule in split_words(text):
        made.apply(rule, catalogue)
    return made
