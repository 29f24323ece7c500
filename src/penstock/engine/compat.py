"""Where versions of Redis differ, and which one we are.

One row per version, one column per difference. Code asks for the difference (`compat.xread_plus`), never
for the version, so a new version is a new row: the one before it, and what it changed. The newest row is
the default.

An option that a version brought is a column too, asked where its word is read:

    elif context.compat.xread_claim and frame.is_word(at, b"CLAIM"):

so that an older level refuses the word by falling through to what it says of any word that it does not know.
A command that a version brought has that version as its row's `since`; whoever makes the table of a level
leaves out the rows above it, and engine/lookup.py then knows nothing of them, HELP lines aside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Compat:
    """One version's answers."""

    version: str
    redis_version: str
    """What INFO and HELLO call us: the last release of that version when this was written."""
    consumer_activity: bool
    """7.2: asking and getting are told apart (`inactive`, `active-time`); asking makes the consumer."""
    unblock_repeats_command: bool
    """7.2: a blocked reader is told what its command would say now; before, a text of its own."""
    unbalanced_names_command: bool
    """7.2: the complaint about keys without ids names the command; before, it was XREAD for both."""
    xsetid_deleted_first: bool
    """7.2: XSETID looks at the largest deleted id before it looks at the entries."""
    timeout_has_end: bool
    """7.2: a time to wait that ends beyond 64 bits is refused; before, it did not end."""
    small_lists_are_listpacks: bool
    """7.2: OBJECT ENCODING tells a list of one small node from a longer one."""
    xread_plus: bool
    """7.4: XREAD takes `+` for the last entry."""
    history_is_change: bool
    """Before 7.4 a consumer that reads its own history counted as a change of the data."""
    lag_after_trims: bool
    """7.4: what was trimmed before a group came to it is no lag."""
    client_lists_library: bool
    """7.2: CLIENT LIST shows what CLIENT SETINFO was told."""
    pushes_follow_reply: bool
    """7.2: what a client says to its own channel comes behind the reply to PUBLISH; before, in front."""
    hello_shows_version: bool
    """7.2: what HELLO tells a stranger to use includes the version of the protocol."""
    reset_forgets_options: bool
    """7.2: RESET undoes CLIENT NO-EVICT and CLIENT NO-TOUCH."""
    client_lists_watches: bool
    """7.4: CLIENT LIST shows how many keys a client watches."""
    kill_by_age: bool
    """7.4: CLIENT KILL takes MAXAGE."""
    rdb_version: int
    """Of snapshots and of DUMP: what is written, and the newest payload that RESTORE takes."""

    def knows(self, since: str) -> bool:
        """Tell whether a command of that version, such as 7.2.0, exists in this one."""
        return _numbers(since) <= _numbers(self.version)


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


_7_0 = Compat(
    "7.0",
    redis_version="7.0.15",
    consumer_activity=False,
    unblock_repeats_command=False,
    unbalanced_names_command=False,
    xsetid_deleted_first=False,
    timeout_has_end=False,
    small_lists_are_listpacks=False,
    xread_plus=False,
    history_is_change=True,
    lag_after_trims=False,
    client_lists_library=False,
    pushes_follow_reply=False,
    hello_shows_version=False,
    reset_forgets_options=False,
    client_lists_watches=False,
    kill_by_age=False,
    rdb_version=10,
)
_7_2 = replace(
    _7_0,
    version="7.2",
    redis_version="7.2.7",
    consumer_activity=True,
    unblock_repeats_command=True,
    unbalanced_names_command=True,
    xsetid_deleted_first=True,
    timeout_has_end=True,
    small_lists_are_listpacks=True,
    client_lists_library=True,
    pushes_follow_reply=True,
    hello_shows_version=True,
    reset_forgets_options=True,
    rdb_version=11,
)
_7_4 = replace(
    _7_2,
    version="7.4",
    redis_version="7.4.2",
    xread_plus=True,
    history_is_change=False,
    lag_after_trims=True,
    client_lists_watches=True,
    kill_by_age=True,
    rdb_version=12,
)

LEVELS = {level.version: level for level in (_7_0, _7_2, _7_4)}
NEWEST = LEVELS["7.4"]


def level(version: str) -> Compat:
    """The row of a version. Raises: ConfigError for one that we do not implement."""
    if version not in LEVELS:
        known = ", ".join(map(repr, LEVELS))
        raise ConfigError(f"compat-version is one of {known}, not {version!r}")
    return LEVELS[version]
