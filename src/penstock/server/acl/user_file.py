"""The lines of users in a file: `aclfile`, or `user` lines in redis.conf.

    user alice on #2bd8... ~orders* resetchannels -@all +@stream

A file is read as a whole: one bad line, and no user changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, ProtocolError
from penstock.server.acl.selector import RuleError, UnknownName
from penstock.server.acl.user import User, is_valid_name, joined_selectors
from penstock.server.acl.users import Users
from penstock.server.config.file import replace_file
from penstock.wire.parser import split_words

if TYPE_CHECKING:
    from penstock.server.config.settings import Config

BOTH = (
    "Configuring users in the configuration file and an aclfile at the same time is not supported: use one of"
    " them"
)


def start_users(users: Users, config: Config) -> None:
    """Read the users at start. Raises: ConfigError."""
    users.file = config.value("aclfile")
    if users.file and config.user_lines:
        raise ConfigError(f"aclfile {users.file}: {BOTH}")
    if users.file:
        try:
            users.replace_all(read_users(users, users.file))
        except RuleError as error:
            raise ConfigError(f"aclfile: {error}") from error
        return
    if config.user_lines:
        users.replace_all(_configured(users, config))


def _configured(users: Users, config: Config) -> dict[bytes, User]:
    found = {users.default.name: users.default.copy()}
    seen: set[bytes] = set()
    for setting in config.user_lines:
        words = [word.encode(errors="surrogateescape") for word in setting.words]
        try:
            if not words:
                raise RuleError("wrong number of arguments")
            if words[0] in seen:
                raise RuleError("the user is there already")
            found[words[0]] = _parsed(users, words)
        except RuleError as error:
            raise setting.refused(error) from error
        seen.add(words[0])
    return found


def _parsed(users: Users, words: Sequence[bytes]) -> User:
    """The user of a line. Raises: RuleError."""
    if not is_valid_name(words[0]):
        raise RuleError("Syntax error")
    made = users.fresh(words[0])
    for rule in joined_selectors(list(words[1:])):
        try:
            made.apply(rule, users.catalogue, users.all_channels)
        except UnknownName as error:
            # It is no secret, so it may be shown.
            text = rule.decode("utf-8", "surrogateescape")
            raise RuleError(f"Error in applying operation '{text}': {error}") from None
    return made


def read_users(users: Users, path: str) -> dict[bytes, User]:
    """The users of a file. Raises: RuleError with all problems of the file, in Redis's words."""
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise RuleError(f"Error loading ACLs, opening file '{path}': {error.strerror}") from error
    found: dict[bytes, User] = {}
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        words = _words_or_none(line)
        if words is None or len(words) < 2 or words[0] != b"user":
            problems.append(
                f"{path}:{number} should start with user keyword followed by the username."
            )
        elif words[1] in found:
            name = words[1].decode("utf-8", "surrogateescape")
            problems.append(f"WARNING: Duplicate user '{name}' found on line {number}.")
        else:
            try:
                found[words[1]] = _parsed(users, words[1:])
            except RuleError as error:
                problems.append(f"{path}:{number}: {error}.")
                found[words[1]] = User(words[1])
    if problems:
        warning = "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
        raise RuleError(" ".join([*problems, warning]))
    return found


def _words_or_none(line: bytes) -> list[bytes] | None:
    try:
        return split_words(line)
    except ProtocolError:
        return None


def save_users(users: Users) -> None:
    """Write all users to the aclfile. Raises: OSError."""
    replace_file(users.file, b"".join(line + b"\n" for line in users.lines()))
