"""What a user's clients may do: the check of each command.

A user who may do everything has no Permissions, and nothing is checked. For all others every command is
checked, in its quick form too. The usual client repeats itself: the same command, on the same key. So the
words that the last allowed call was judged by are kept for each command, and a call with equal words is
allowed at once, without making an object:

    XADD orders * ...                       word 1
    XACK orders billing 1-0                 words 1 and 2
    XREADGROUP GROUP g c STREAMS orders >   all words: their meaning depends on their order
    PING                                    none

Permissions never change. New rules make a new object, and nothing that was allowed before is remembered.

The positions of keys and groups come from the functions of the command's row, which read the arguments as the
command itself does. If these raise an error, the command fails with the same error, before it touches a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core import spans
from penstock.core.frame import Frame
from penstock.core.glob import Glob
from penstock.engine.table import NO_KEYS, ONE_KEY, Command, Flags, need_of, places_in
from penstock.errors import CommandError
from penstock.server.command_catalogue import shown_name

if TYPE_CHECKING:
    from penstock.server.acl.selector import Selector

# Why a command is refused. If several selectors refuse it, the highest reason is reported, as in Redis.
COMMAND, KEY, GROUP, CHANNEL = range(1, 5)

_KEPT_BYTES_MAX = 1024  # longer words are not remembered


class Denial:
    """Why a command is refused, and the position of the word that is to blame."""

    __slots__ = ("at", "reason")

    def __init__(self, reason: int, at: int) -> None:
        self.reason = reason
        self.at = at


class Places:
    """The positions of the arguments that are checked; each key with its need."""

    __slots__ = ("channels", "group_at", "keys", "patterns")

    def __init__(self, command: Command, frame: Frame) -> None:
        self.channels = places_in(frame, command.channels)
        self.patterns = places_in(frame, command.patterns)
        self.group_at = command.group_at
        self.keys: list[tuple[int, int]] = []
        try:
            if command.find_group is not None:
                self.group_at = command.find_group(frame)
            for number, at in enumerate(command.key_places(frame)):
                access = command.access_to(frame, number)
                if access != "not_key" and at < frame.count:
                    self.keys.append((at, need_of(access)))
        except CommandError:
            self.keys = []
            self.group_at = 0
        if self.group_at >= frame.count:
            self.group_at = 0


class Rights:
    """One selector, with its patterns parsed."""

    __slots__ = (
        "all_channels",
        "all_keys",
        "channels",
        "commands",
        "first_words",
        "groups",
        "keys",
    )

    def __init__(self, selector: Selector) -> None:
        self.commands = frozenset(selector.commands)
        self.first_words = {name: list(words) for name, words in selector.first_words.items()}
        self.all_keys = selector.all_keys
        self.keys = [(Glob(pattern), need) for pattern, need in selector.keys.items()]
        self.all_channels = selector.all_channels
        self.channels = [Glob(pattern) for pattern in selector.channels]
        self.groups: list[Glob] | None = None
        if selector.groups is not None:
            self.groups = [Glob(pattern) for pattern in selector.groups]

    def denial_or_none(self, command: Command, frame: Frame, places: Places) -> Denial | None:
        """Why this selector does not allow a command, or None."""
        if not self._has_command(command, frame):
            return Denial(COMMAND, 0)
        if not self.all_keys:
            for at, need in places.keys:
                if not self._has_key(frame.piece(at), need):
                    return Denial(KEY, at)
        if places.group_at and not self._has_group(frame.piece(places.group_at)):
            return Denial(GROUP, places.group_at)
        if not self.all_channels:
            for at in places.channels:
                if not self.has_channel(frame.piece(at)):
                    return Denial(CHANNEL, at)
            for at in places.patterns:
                if not self.has_pattern(frame.piece(at)):
                    return Denial(CHANNEL, at)
        return None

    def _has_command(self, command: Command, frame: Frame) -> bool:
        name = shown_name(command)
        if name in self.commands or command.flags & Flags.NO_AUTH:
            return True
        words = self.first_words.get(name)
        return words is not None and frame.count > 1 and frame.piece(1).lower() in words

    def _has_group(self, name: bytes) -> bool:
        return self.groups is None or _is_matched(self.groups, name)

    def _has_key(self, key: bytes, need: int) -> bool:
        for glob, allowed in self.keys:  # noqa: SIM110 - a generator cannot be compiled here
            if allowed & need == need and glob.matches(key):
                return True
        return False

    def has_channel(self, name: bytes) -> bool:
        """Tell whether a channel may be used."""
        return self.all_channels or _is_matched(self.channels, name)

    def has_pattern(self, pattern: bytes) -> bool:
        """Tell whether a pattern may be subscribed to. As in Redis, it must be equal to a rule's."""
        if self.all_channels:
            return True
        for glob in self.channels:  # noqa: SIM110
            if glob.pattern == pattern:
                return True
        return False


def _is_matched(globs: list[Glob], name: bytes) -> bool:
    for glob in globs:  # noqa: SIM110
        if glob.matches(name):
            return True
    return False


class Allowed:
    """The last allowed call of a command: the words after its name that decided."""

    __slots__ = ("command", "count", "words")

    def __init__(self, command: Command, words: list[bytes], count: int) -> None:
        self.command = command
        self.words = words
        self.count = count  # of all words of the call, if all of them decided; otherwise 0


class Permissions:
    """The permissions of one user. `rights`: one for each selector."""

    __slots__ = ("_allowed", "_last", "rights")

    def __init__(self, selectors: list[Selector]) -> None:
        self.rights = [Rights(selector) for selector in selectors]
        self._allowed: dict[Command, Allowed] = {}
        self._last: Allowed | None = None  # of the last command: most follow one of the same name

    def allows(self, command: Command, frame: Frame) -> bool:
        """Tell whether a command is allowed. Its arity is checked."""
        last = self._last
        if last is None or last.command is not command:
            last = self._allowed.get(command)
            if last is None:
                return self._judge(command, frame)
            self._last = last
        if last.count and last.count != frame.count:
            return self._judge(command, frame)
        words = last.words
        for at in range(len(words)):
            if not spans.is_piece(frame.buffer, frame.spans, at + 1, words[at]):
                return self._judge(command, frame)
        return True

    def _judge(self, command: Command, frame: Frame) -> bool:
        if self.denial_or_none(command, frame) is not None:
            return False
        self._remember(command, frame)
        return True

    def denial_or_none(self, command: Command, frame: Frame) -> Denial | None:
        """Why a command is refused, or None."""
        places = Places(command, frame)
        worst: Denial | None = None
        for rights in self.rights:
            denial = rights.denial_or_none(command, frame, places)
            if denial is None:
                return None
            if worst is None or (denial.reason, denial.at) > (worst.reason, worst.at):
                worst = denial
        return worst

    def _remember(self, command: Command, frame: Frame) -> None:
        """Keep the words that decided, if they are short and the command has a quick form."""
        if command.quick is None or command.find_access is not None:
            return
        for rights in self.rights:
            if shown_name(command) in rights.first_words:
                return  # the first argument decides too, and it may be none of the words below
        if command.find_keys is not None:
            if frame.bytes_from(1) <= _KEPT_BYTES_MAX:
                words = [frame.piece(at) for at in range(1, frame.count)]
                self._keep(Allowed(command, words, frame.count))
            return
        count = max(command.keys[0], command.group_at)
        words = [frame.piece(at) for at in range(1, count + 1)]
        if command.keys in (ONE_KEY, NO_KEYS) and sum(map(len, words)) <= _KEPT_BYTES_MAX:
            self._keep(Allowed(command, words, 0))

    def _keep(self, allowed: Allowed) -> None:
        self._allowed[allowed.command] = allowed
        self._last = allowed

    def allows_channel(self, name: bytes) -> bool:
        """Tell whether a channel may be subscribed to."""
        return True in [rights.has_channel(name) for rights in self.rights]

    def allows_pattern(self, pattern: bytes) -> bool:
        """Tell whether a pattern may be subscribed to."""
        return True in [rights.has_pattern(pattern) for rights in self.rights]
