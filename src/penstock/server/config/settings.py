"""Settings: what a directive is, how its value is read and shown, and the values in force.

    port 6379                     in a file, in redis.conf's syntax (file.py)
    --port 6379                   on the command line, which wins over the file
    CONFIG SET timeout 60         while the server runs (commands/config.py)

All three come here as a name and words, and are read by the directive's kind; the table of directives is
directives.py. A refusal is a ConfigError with the text that Redis has for it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError
from penstock.server.config.kinds import Kind
from penstock.server.stats.redaction import public_setting

if TYPE_CHECKING:
    from penstock.server.server import Server

CHANGEABLE, AT_START, PROTECTED = "any time", "at start", "protected"


@dataclass(frozen=True, slots=True)
class Directive:
    """One row of the table.

    `when` it may be set: at any time, only at start, or (protected) at run time only where
    enable-protected-configs allows it. `apply` puts a value in force; without it, whoever needs the value
    asks the Config. `also` are the names that it has or had as well. `check` says what is wrong with a value
    that its kind has found right, or nothing.
    """

    name: str
    kind: Kind
    default: Any
    meaning: str
    when: str = CHANGEABLE
    apply: Callable[[Server, Any], None] | None = None
    also: tuple[str, ...] = ()
    check: Callable[[Any], str | None] | None = None

    def parse(self, words: Sequence[str]) -> Any:
        """The value that words stand for. Raises: ConfigError."""
        if len(words) != 1 and not (words and self.kind.many):
            raise ConfigError("wrong number of arguments")
        value = self.kind.parse(" ".join(words))
        problem = None if self.check is None else self.check(value)
        if problem is not None:
            raise ConfigError(problem)
        return value


@dataclass(frozen=True, slots=True)
class Setting:
    """A directive as somebody wrote it, and where."""

    name: str
    words: tuple[str, ...]
    place: str

    def refused(self, why: object) -> ConfigError:
        """Tell what is wrong with it."""
        return ConfigError(f"{self.place}: {public_setting(self.name, self.words)}: {why}")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Every name that we know something about.

    `ignored`: Redis knows them, here they mean nothing. `refused`: what Redis would do we cannot, and it
    matters; name -> (values that ask for nothing of the kind, why we refuse any other).
    """

    directives: Sequence[Directive]
    ignored: frozenset[str]
    refused: Mapping[str, tuple[frozenset[str], str]]

    def by_name(self) -> dict[str, Directive]:
        """Directives by each of their names."""
        return {name: row for row in self.directives for name in (row.name, *row.also)}

    def nearest_or_none(self, name: str) -> str | None:
        """What somebody may have meant who wrote a name that nobody knows."""
        known = [*self.by_name(), *self.ignored, *self.refused]
        found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        return found[0] if found else None


class Config:
    """The values in force, and where they came from.

    Read: value, shown, names. Set at start: load. Set while running: change. `server` is None until the
    values are in force (`attach`); `file` is what CONFIG REWRITE writes, or None.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.directives = vocabulary.by_name()
        self.values: dict[str, Any] = {row.name: row.default for row in vocabulary.directives}
        self.ignored: dict[str, str] = {}
        self.warnings: list[str] = []
        self.file: str | None = None
        self.server: Server | None = None

    def value(self, name: str) -> Any:
        """The value in force."""
        return self.values[name]

    def shown(self, name: str) -> str:
        """As CONFIG GET gives it."""
        row = self.directives.get(name)
        return self.ignored[name] if row is None else row.kind.show(self.values[row.name])

    def names(self) -> list[str]:
        """Every name that CONFIG GET can show."""
        return [*self.directives, *self.ignored]

    # --- At start ----------------------------------------------------------------------------------

    def load(self, settings: Iterable[Setting]) -> None:
        """Take over what a file or a command line says; the later wins. Raises: ConfigError."""
        repeated: set[str] = set()
        for setting in settings:
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
            self.values[row.name] = value

    def _load_foreign(self, setting: Setting) -> None:
        """A name that is none of ours."""
        name = setting.name
        text = " ".join(setting.words)
        if name in self.vocabulary.refused:
            harmless, why = self.vocabulary.refused[name]
            if text not in harmless:
                raise setting.refused(why)
            self.ignored[name] = text
        elif name in self.vocabulary.ignored:
            self.ignored[name] = text
            self.warnings.append(f"{setting.place}: {name} has no meaning here and is ignored")
        else:
            near = self.vocabulary.nearest_or_none(name)
            hint = "" if near is None else f"; did you mean {near}?"
            raise setting.refused(f"there is no such directive{hint}")

    def set_at_start(self, name: str, *words: str) -> None:
        """Take over a value that a program gives. Raises: ConfigError."""
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
        for name, value in values.items():
            try:
                self._put_in_force(name, value)
            except (ConfigError, OSError, ValueError) as error:
                for changed, old in before.items():
                    self._put_in_force(changed, old)
                raise ConfigError(str(error), name) from error

    def _put_in_force(self, name: str, value: Any) -> None:
        row = self.directives[name]
        self.values[name] = value
        if row.apply is not None and self.server is not None:
            row.apply(self.server, value)
