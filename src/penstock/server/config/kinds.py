"""The types of directive values: how each is parsed, checked and shown, with Redis's error texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from penstock.engine.events import kinds_text, parse_kinds_or_none
from penstock.engine.retention.amounts import amount_or_none, ms_or_none, ms_text
from penstock.engine.retention.policy import Policy, parse_policies
from penstock.errors import CommandError, ConfigError
from penstock.server.net.output_limits import OutputLimit
from penstock.server.net.tls import PROTOCOLS

INT_MAX = 2**31 - 1
UINT_MAX = 2**32 - 1
LONG_MAX = 2**63 - 1


class Kind:
    """The type of a value. `many`: it may have several words. `allowed` is for the documentation."""

    many = False
    adds_to_default = False

    @property
    def allowed(self) -> str:
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """Raises: ConfigError."""
        raise NotImplementedError

    def show(self, value: Any) -> str:
        return str(value)

    def joined(self, before: Any, value: Any) -> Any:
        """The value of a directive that is written more than once."""
        return value

    def lines(self, value: Any) -> list[str]:
        """The value as lines of a file."""
        return [self.show(value)]


@dataclass(frozen=True)
class YesNo(Kind):
    """True or False."""

    @property
    def allowed(self) -> str:
        return "yes, no"

    def parse(self, text: str) -> bool:
        if text.lower() not in ("yes", "no"):
            raise ConfigError("argument must be 'yes' or 'no'")
        return text.lower() == "yes"

    def show(self, value: bool) -> str:
        return "yes" if value else "no"


@dataclass(frozen=True)
class Number(Kind):
    """An integer in a range."""

    low: int
    high: int

    @property
    def allowed(self) -> str:
        return f"{self.low} to {self.high}"

    def parse(self, text: str) -> int:
        if (
            not re.fullmatch(r"0|-?[1-9]\d{0,18}", text, re.ASCII)
            or not -LONG_MAX - 1 <= int(text) <= LONG_MAX
        ):
            raise ConfigError("argument couldn't be parsed into an integer")
        return self._in_range(int(text))

    def _in_range(self, value: int) -> int:
        if not self.low <= value <= self.high:
            raise ConfigError(f"argument must be between {self.low} and {self.high} inclusive")
        return value


@dataclass(frozen=True)
class Hertz(Number):
    """A number that is clamped to 1 .. 500."""

    def parse(self, text: str) -> int:
        return min(max(super().parse(text), 1), 500)


@dataclass(frozen=True)
class Memory(Number):
    """A size in bytes, with an optional unit: 1k is 1000, 1kb is 1024."""

    @property
    def allowed(self) -> str:
        return f"{self.low} to {self.high} bytes; k, kb, m, mb, g, gb"

    def parse(self, text: str) -> int:
        return self._in_range(parse_memory(text))


@dataclass(frozen=True)
class MemoryOrPercent(Memory):
    """A size, or a percentage, which is stored as a negative number as in Redis."""

    @property
    def allowed(self) -> str:
        return f"{super().allowed}; or 0% to 100%"

    def parse(self, text: str) -> int:
        found = re.fullmatch(r"(\d{1,18})%", text, re.ASCII)
        if found is None:
            try:
                return super().parse(text)
            except ConfigError as error:
                if "between" in str(error):
                    raise
                raise ConfigError("argument must be a memory or percent value") from None
        if int(found[1]) > 100:
            raise ConfigError("percentage argument must be less or equal to 100")
        return -int(found[1])

    def show(self, value: int) -> str:
        return f"{-value}%" if value < 0 else str(value)


def parse_memory(text: str) -> int:
    """A size in bytes. Raises: ConfigError."""
    amount = amount_or_none(text)
    if amount is None:
        raise ConfigError("argument must be a memory value")
    return amount


@dataclass(frozen=True)
class Time(Kind):
    """A time in milliseconds, with a unit; 0 for none."""

    @property
    def allowed(self) -> str:
        return "0, or a time such as 30s, 5m, 2h, 7d, 4w"

    def parse(self, text: str) -> int:
        ms = 0 if text == "0" else ms_or_none(text)
        if ms is None or ms > LONG_MAX:
            raise ConfigError("argument must be 0 or a time such as 30s, 5m, 2h, 7d, 4w")
        return ms

    def show(self, value: int) -> str:
        return ms_text(value) if value else "0"


@dataclass(frozen=True)
class Policies(Kind):
    """Rules of retention; each line adds rules, an empty one removes all."""

    many = True

    @property
    def allowed(self) -> str:
        return "pattern [age time] [bytes size] [length count] [acked yes] [idle-group time] [force yes] ..."

    def parse(self, text: str) -> tuple[Policy, ...]:
        try:
            return parse_policies(text.split())
        except CommandError as error:
            raise ConfigError(str(error)) from None

    def show(self, value: tuple[Policy, ...]) -> str:
        return " ".join(self.lines(value)) if value else ""

    def joined(self, before: Any, value: Any) -> Any:
        return (*before, *value) if value else ()

    def lines(self, value: tuple[Policy, ...]) -> list[str]:
        return [policy.text() for policy in value] or ['""']


@dataclass(frozen=True)
class Choice(Kind):
    """One of several words."""

    names: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return ", ".join(self.names)

    def parse(self, text: str) -> str:
        if text.lower() not in self.names:
            raise ConfigError(f"argument(s) must be one of the following: {', '.join(self.names)}")
        return text.lower()


@dataclass(frozen=True)
class Text(Kind):
    """Any text; `hint` describes it."""

    hint: str = "any text"

    @property
    def allowed(self) -> str:
        return self.hint

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True)
class Words(Kind):
    """Several words."""

    hint: str
    many = True

    @property
    def allowed(self) -> str:
        return self.hint

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(text.split())

    def show(self, value: tuple[str, ...]) -> str:
        return " ".join(value)


@dataclass(frozen=True)
class Protocols(Words):
    """Versions of TLS."""

    hint: str = "TLSv1.2 TLSv1.3; older ones if OpenSSL supports them; empty for these two"

    def parse(self, text: str) -> tuple[str, ...]:
        known = {name.lower(): name for name in PROTOCOLS}
        found = [known.get(word.lower()) for word in text.split()]
        if None in found:
            raise ConfigError(
                "Invalid tls-protocols specified. Use a combination of TLSv1 to TLSv1.3"
            )
        return tuple(name for name in found if name is not None)


@dataclass(frozen=True)
class Octal(Kind):
    """File permissions; 0 for the system's default."""

    @property
    def allowed(self) -> str:
        return "0 to 777, octal"

    def parse(self, text: str) -> int:
        if not re.fullmatch(r"[0-7]{1,4}", text, re.ASCII) or int(text, 8) > 0o777:
            raise ConfigError("argument must be between 0 and 777 inclusive")
        return int(text, 8)

    def show(self, value: int) -> str:
        return f"{value:o}"


@dataclass(frozen=True)
class SaveTimes(Kind):
    """Pairs of seconds and changes; each line adds pairs, an empty one removes all."""

    many = True

    @property
    def allowed(self) -> str:
        return 'seconds changes ..., or ""'

    def parse(self, text: str) -> tuple[tuple[int, int], ...]:
        words = text.split()
        if len(words) % 2 or not all(re.fullmatch(r"\d{1,18}", word, re.ASCII) for word in words):
            raise ConfigError("Invalid save parameters")
        numbers = [int(word) for word in words]
        pairs = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        if any(seconds < 1 for seconds, _ in pairs):
            raise ConfigError("Invalid save parameters")
        return pairs

    def show(self, value: tuple[tuple[int, int], ...]) -> str:
        return " ".join(f"{seconds} {changes}" for seconds, changes in value)

    def joined(self, before: Any, value: Any) -> Any:
        return (*before, *value) if value else ()

    def lines(self, value: tuple[tuple[int, int], ...]) -> list[str]:
        return [f"{seconds} {changes}" for seconds, changes in value] or ['""']


@dataclass(frozen=True)
class OutputClasses(Kind):
    """Limits per client class; classes that are not named keep theirs."""

    many = True
    adds_to_default = True

    @property
    def allowed(self) -> str:
        return "normal|replica|pubsub hard soft seconds ..."

    def parse(self, text: str) -> dict[str, OutputLimit]:
        words = text.split()
        if len(words) % 4:
            raise ConfigError("Wrong number of arguments in buffer limit configuration.")
        found: dict[str, OutputLimit] = {}
        for at in range(0, len(words), 4):
            name = words[at].lower().replace("slave", "replica")
            if name not in ("normal", "replica", "pubsub"):
                raise ConfigError("Invalid client class specified in buffer limit configuration.")
            found[name] = self._limit(words[at + 1 : at + 4])
        return found

    def _limit(self, words: list[str]) -> OutputLimit:
        try:
            return OutputLimit(
                parse_memory(words[0]), parse_memory(words[1]), Number(0, INT_MAX).parse(words[2])
            )
        except ConfigError:
            raise ConfigError(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration."
            ) from None

    def show(self, value: dict[str, OutputLimit]) -> str:
        return " ".join(self.lines(value)).replace("replica", "slave")

    def joined(self, before: Any, value: Any) -> Any:
        return {**before, **value}

    def lines(self, value: dict[str, OutputLimit]) -> list[str]:
        return [
            f"{name} {limit.hard_bytes} {limit.soft_bytes} {limit.soft_seconds}"
            for name, limit in value.items()
        ]


@dataclass(frozen=True)
class Events(Kind):
    """Kinds of keyspace events, one letter each."""

    @property
    def allowed(self) -> str:
        return "letters out of Ag$lshzxeKEtmdn"

    def parse(self, text: str) -> int:
        kinds = parse_kinds_or_none(text)
        if kinds is None:
            raise ConfigError("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
        return kinds

    def show(self, value: int) -> str:
        return kinds_text(value)


@dataclass(frozen=True)
class Percentiles(Kind):
    """Numbers from 0 to 100."""

    many = True

    @property
    def allowed(self) -> str:
        return "numbers from 0 to 100"

    def parse(self, text: str) -> tuple[float, ...]:
        name = "latency-tracking-info-percentiles"
        try:
            found = tuple(float(word) for word in text.split())
        except ValueError:
            raise ConfigError(f"Invalid {name} parameters") from None
        if not all(0 <= percent <= 100 for percent in found):
            raise ConfigError(f"{name} parameters should sit between [0.0,100.0]")
        return found

    def show(self, value: tuple[float, ...]) -> str:
        return " ".join(f"{percent:g}" for percent in value)


@dataclass(frozen=True)
class Primary(Kind):
    """The address of a primary, or None: `host port`, `no one`."""

    many = True

    @property
    def allowed(self) -> str:
        return "host port; no one"

    def parse(self, text: str) -> tuple[str, int] | None:
        words = text.split()
        if not words or [word.lower() for word in words] == ["no", "one"]:
            return None
        if len(words) != 2:
            raise ConfigError("wrong number of arguments")
        if not words[1].isdigit() or not 0 < int(words[1][:9]) <= 65535:
            raise ConfigError("Invalid master port")
        return words[0], int(words[1])

    def show(self, value: tuple[str, int] | None) -> str:
        return "" if value is None else f"{value[0]} {value[1]}"

    def lines(self, value: tuple[str, int] | None) -> list[str]:
        return [] if value is None else [self.show(value)]
