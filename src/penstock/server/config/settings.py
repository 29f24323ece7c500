"""The settings of a server: what a directive is, and the values in force.

    port 6379                     in a file, in redis.conf's syntax (file.py)
    --port 6379                   on the command line, which overrides the file
    CONFIG SET timeout 60         while the server runs (commands/config.py)

All three arrive here as a name and its arguments, and the directive's kind parses them. directives.py holds
the table of directives. An invalid value raises ConfigError with Redis's text.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError
from penstock.server.config.kinds import Kind
from penstock.server.log import LOG
from penstock.server.stats.redaction import public_setting

if TYPE_CHECKING:
    from penstock.server.server import Server

USER_LINE = "user"
CHANGEABLE, AT_START, PROTECTED = "any time", "at start", "protected"


@dataclass(frozen=True, slots=True)
class Directive:
    """One row of the table.

    when      when it may be set: at any time, only at start, or (protected) at run time only if
              enable-protected-configs allows it
    apply     puts a value in force; without it, readers ask the Config for the value
    also      other names of the directive
    check     returns an error text for a value that the kind accepts, or None
    derived   computes the value from the other values as long as the directive is not set
    """

    name: str
    kind: Kind
    default: Any
    meaning: str
    when: str = CHANGEABLE
    apply: Callable[[Server, Any], None] | None = None
    also: tuple[str, ...] = ()
    check: Callable[[Any], str | None] | None = None
    derived: Callable[[Mapping[str, Any]], Any] | None = None

    def parse(self, words: Sequence[str]) -> Any:
        """The value that the arguments stand for. Raises: ConfigError."""
        if len(words) != 1 and not (words and self.kind.many):
            raise ConfigError("wrong number of arguments")
        value = self.kind.parse(" ".join(words))
        problem = None if self.check is None else self.check(value)
        if problem is not None:
            raise ConfigError(problem)
        return value


@dataclass(frozen=True, slots=True)
class Setting:
    """A directive as written in a file or on the command line, with its place there."""

    name: str
    words: tuple[str, ...]
    place: str

    def refused(self, why: object) -> ConfigError:
        """The error for this line: its place, its text without secrets, and the reason."""
        return ConfigError(f"{self.place}: {public_setting(self.name, self.words)}: {why}")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Every directive name that penstock recognises.

    ignored   directives of Redis that have no effect here
    refused   directives of Redis that cannot be ignored safely: name -> (harmless values, reason for refusal)
    """

    directives: Sequence[Directive]
    ignored: frozenset[str]
    refused: Mapping[str, tuple[frozenset[str], str]]

    def by_name(self) -> dict[str, Directive]:
        """The directives by name, other names included."""
        return {name: row for row in self.directives for name in (row.name, *row.also)}

    def nearest_or_none(self, name: str) -> str | None:
        """The known name most similar to an unknown one."""
        known = [*self.by_name(), *self.ignored, *self.refused]
        found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        return found[0] if found else None


class Config:
    """The values in force.

    Read: value, shown, names, is_default. Set at start: load, set_at_start. Set while running: change.

    server    None until `attach` puts the values in force
    file      the file that CONFIG REWRITE writes, or None
    ignored   the ignored directives that were set, with their values
    user_lines   the `user` lines; they are no setting, and CONFIG GET does not show them
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.directives = vocabulary.by_name()
        self.values: dict[str, Any] = {row.name: row.default for row in vocabulary.directives}
        self.ignored: dict[str, str] = {}
        self._given: set[str] = (
            set()
        )  # directives that a file, the command line or CONFIG SET has set
        self.user_lines: list[Setting] = []
        self.file: str | None = None
        self.server: Server | None = None

    def value(self, name: str) -> Any:
        """The value in force."""
        row = self.directives[name]
        if row.derived is not None and name not in self._given:
            return row.derived(self.values)
        return self.values[name]

    def is_default(self, row: Directive) -> bool:
        """Tell whether a directive has its default value, so that a file need not mention it."""
        if row.derived is not None:
            return row.name not in self._given
        return bool(self.values[row.name] == row.default)

    def shown(self, name: str) -> str:
        """The value as CONFIG GET shows it."""
        row = self.directives.get(name)
        return self.ignored[name] if row is None else row.kind.show(self.value(row.name))

    def names(self) -> list[str]:
        """All names that CONFIG GET can show."""
        return [*self.directives, *self.ignored]

    def ignored_names(self) -> list[str]:
        """The directives that were set and have no effect here."""
        return [name for name in self.ignored if name in self.vocabulary.ignored]

    # --- At start ----------------------------------------------------------------------------------

    def load(self, settings: Iterable[Setting]) -> None:
        """Set values from a file or a command line; the last one wins. Raises: ConfigError."""
        repeated: set[str] = set()
        for setting in settings:
            if setting.name == USER_LINE:
                self.user_lines.append(setting)
                continue
            row = self.directives.get(setting.name)
            if row is None:
                self._load_foreign(setting)
                continue
            try:
                value = row.parse(setting.words)
            except ConfigError as error:
                raise setting.refused(error) from error
            if row.name in repeated or row.kind.adds_to_default:
                value = row.kind.joined(self.values[row.name], value)
            repeated.add(row.name)
            self._given.add(row.name)
            self.values[row.name] = value

    def _load_foreign(self, setting: Setting) -> None:
        """Ignore or refuse a name that is not in the table."""
        name = setting.name
        text = " ".join(setting.words)
        if name in self.vocabulary.refused:
            harmless, why = self.vocabulary.refused[name]
            if text not in harmless:
                raise setting.refused(why)
            self.ignored[name] = text
        elif name in self.vocabulary.ignored:
            self.ignored[name] = text
        else:
            near = self.vocabulary.nearest_or_none(name)
            hint = "" if near is None else f"; did you mean {near}?"
            raise setting.refused(f"unknown directive{hint}")

    def set_at_start(self, name: str, *words: str) -> None:
        """Set a value that a program passes. Raises: ConfigError."""
        self.load([Setting(name, words, "serve()")])

    def attach(self, server: Server) -> None:
        """Put all values in force."""
        self.server = server
        server.config = self
        for row in self.vocabulary.directives:
            if row.apply is not None:
                row.apply(server, self.values[row.name])

    # --- While running -----------------------------------------------------------------------------

    def change(self, values: Mapping[str, Any]) -> None:
        """Put values in force, all or none. Raises: ConfigError, with the name as its second argument."""
        before = {name: self.values[name] for name in values}
        given = self._given.copy()
        self.values |= values  # first: a certificate and its key are applied together
        self._given |= set(values)
        for name in values:
            try:
                self._put_in_force(name)
            except (ConfigError, OSError, ValueError) as error:
                self.values |= before
                self._given = given
                for changed in before:
                    self._take_back(changed)
                raise ConfigError(str(error), name) from error

    def _take_back(self, name: str) -> None:
        """Put the old value in force. A file may have become unusable; then what runs stays as it is."""
        try:
            self._put_in_force(name)
        except (ConfigError, OSError, ValueError) as error:
            LOG.warning(
                "CONFIG SET: the old value of %s cannot be put in force again: %s", name, error
            )

    def _put_in_force(self, name: str) -> None:
        row = self.directives[name]
        if row.apply is not None and self.server is not None:
            row.apply(self.server, self.values[name])
