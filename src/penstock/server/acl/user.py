"""One user: passwords, state, selectors.

Passwords are stored as SHA-256 in hexadecimal digits, as in Redis.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from penstock.server.acl.permissions import Permissions
from penstock.server.acl.selector import RuleError, Selector, parse_selector
from penstock.server.command_catalogue import Catalogue

_HASH = re.compile(rb"[0-9a-f]{64}")


def password_hash(password: bytes) -> bytes:
    """The form in which a password is stored."""
    return hashlib.sha256(password).hexdigest().encode()


class User:
    """A user. The first selector is its own, the others are those in parentheses.

    sanitize      None until one of the two rules is applied; there is nothing to sanitize here
    permissions   what its clients may do; None for everything
    """

    def __init__(self, name: bytes, all_channels: bool = False) -> None:
        self.name = name
        self.enabled = False
        self.nopass = False
        self.sanitize: bool | None = None
        self.passwords: list[bytes] = []
        self.selectors = [Selector(all_channels=all_channels)]
        self.permissions: Permissions | None = None

    @property
    def shown_name(self) -> str:
        """The name as text."""
        return self.name.decode("utf-8", "surrogateescape")

    def copy(self) -> User:
        """A user with the same rules, to try further rules on."""
        made = User(self.name)
        made.take(self)
        return made

    def take(self, other: User) -> None:
        """Take all rules of another user."""
        self.enabled = other.enabled
        self.nopass = other.nopass
        self.sanitize = other.sanitize
        self.passwords = list(other.passwords)
        self.selectors = [selector.copy() for selector in other.selectors]
        self.permissions = other.permissions

    def is_right(self, password: bytes) -> bool:
        """Check a password. Every stored password is compared, each in constant time."""
        if not self.enabled:
            return False
        given = password_hash(password)
        found = [hmac.compare_digest(given, stored) for stored in self.passwords]
        return self.nopass or any(found)

    # --- Rules -------------------------------------------------------------------------------------

    def apply(self, rule: bytes, catalogue: Catalogue, all_channels: bool = False) -> None:
        """Apply one rule; `all_channels`: acl-pubsub-default. Raises: RuleError."""
        word = rule.lower()
        if not word:
            return
        if word in (b"on", b"off"):
            self.enabled = word == b"on"
        elif word == b"nopass":
            self.nopass, self.passwords = True, []
        elif word == b"resetpass":
            self.nopass, self.passwords = False, []
        elif word in (b"sanitize-payload", b"skip-sanitize-payload"):
            self.sanitize = word == b"sanitize-payload"
        elif word == b"clearselectors":
            del self.selectors[1:]
        elif word == b"reset":
            self.take(User(self.name, all_channels))
            self.sanitize = True
        elif rule[:1] in (b">", b"#"):
            self._add_password(rule)
        elif rule[:1] in (b"<", b"!"):
            self._remove_password(rule)
        elif rule[:1] == b"(" and rule[-1:] == b")":
            self.selectors.append(parse_selector(rule[1:-1], all_channels, catalogue))
        else:
            self.selectors[0].apply(rule, catalogue)

    def _add_password(self, rule: bytes) -> None:
        stored = password_hash(rule[1:]) if rule[:1] == b">" else _checked_hash(rule[1:])
        if stored not in self.passwords:
            self.passwords.append(stored)
        self.nopass = False

    def _remove_password(self, rule: bytes) -> None:
        stored = password_hash(rule[1:]) if rule[:1] == b"<" else _checked_hash(rule[1:])
        if stored not in self.passwords:
            raise RuleError("The password you are trying to remove from the user does not exist")
        self.passwords.remove(stored)

    def compile(self, catalogue: Catalogue) -> None:
        """Derive `permissions` from the rules."""
        unlimited = any(selector.allows_all(catalogue) for selector in self.selectors)
        self.permissions = None if unlimited else Permissions(self.selectors)

    # --- Texts -------------------------------------------------------------------------------------

    def flags(self, shows_sanitizing: bool) -> list[bytes]:
        """The flags; `shows_sanitizing`: also the default of sanitize-payload (Compat)."""
        found = [b"on" if self.enabled else b"off"]
        if self.nopass:
            found.append(b"nopass")
        sanitize = True if self.sanitize is None and shows_sanitizing else self.sanitize
        if sanitize is not None:
            found.append(b"sanitize-payload" if sanitize else b"skip-sanitize-payload")
        return found

    def line(self, shows_sanitizing: bool) -> bytes:
        """The user as a line of a file."""
        own, *others = self.selectors
        passwords = [b"#" + stored for stored in self.passwords]
        parts = [b"user", self.name, *self.flags(shows_sanitizing), *passwords, own.text()]
        return b" ".join([*parts, *(b"(" + selector.text() + b")" for selector in others)])


def _checked_hash(text: bytes) -> bytes:
    if _HASH.fullmatch(text) is None:
        raise RuleError(
            "The password hash must be exactly 64 characters and contain only lowercase hexadecimal"
            " characters"
        )
    return text


def joined_selectors(rules: list[bytes]) -> list[bytes]:
    """Join the parts of a selector that was split at its spaces. Raises: RuleError.

    As in Redis, a word that starts with a parenthesis opens a selector, and one that ends with one closes it.
    """
    found: list[bytes] = []
    opened: list[bytes] = []
    for rule in rules:
        if opened or (rule[:1] == b"(" and rule[-1:] != b")"):
            opened.append(rule)
            if rule[-1:] == b")":
                found.append(b" ".join(opened))
                opened = []
        else:
            found.append(rule)
    if opened:
        start = opened[0].decode("utf-8", "surrogateescape")
        raise RuleError(f"Unmatched parenthesis in acl selector starting at '{start}'.")
    return found


def is_valid_name(name: bytes) -> bool:
    """Tell whether a name can be written to a file."""
    return not any(char in b" \t\n\v\f\r\0" for char in name)
