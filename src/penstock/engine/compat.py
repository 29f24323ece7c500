"""The differences between versions of Redis, and the version that the engine follows.

One row per version, one column per difference. Code asks for the difference (`compat.xread_plus`), never for
the version. So a new version is a new row: the previous one plus its changes.

An option that a version added is also a column, checked where its word is read:

    elif context.compat.xread_claim and frame.is_word(at, b"CLAIM"):

so that an older level refuses the word like any unknown word. A replay accepts every word, because the log
may come from a higher level. A command that a version added has that version as its row's `since`; the
command table of a level omits the rows above it. engine/lookup.py then does not find them; HELP still lists
them.

The default is the newest level that the tests compare with a live server. Levels above it follow the
documentation and the sources.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.core.stream import LAG_COUNTS_TRIMMED, LAG_RECOUNTS, LAG_SKIPS_TRIMMED
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Compat:
    """One version."""

    version: str
    redis_version: str
    """The version that INFO and HELLO report: the last release of that version at the time of writing."""
    consumer_activity: bool
    """7.2: XINFO has separate times for asking and receiving (`inactive`); asking creates the consumer."""
    unblock_repeats_command: bool
    """7.2: a blocked reader gets the error that its command would get now; before, a text of its own."""
    unbalanced_names_command: bool
    """7.2: the error about keys without ids names the command; before, it said XREAD for both."""
    xsetid_deleted_first: bool
    """7.2: XSETID checks the largest deleted id before the entries."""
    timeout_has_end: bool
    """7.2: a timeout that ends above 64 bits is refused; before, it never ended."""
    small_lists_are_listpacks: bool
    """7.2: OBJECT ENCODING tells a list of one small node from a longer one."""
    xread_plus: bool
    """7.4: XREAD takes `+` for the last entry."""
    history_is_change: bool
    """Before 7.4 a consumer that reads its own history counted as a change of the data."""
    lag_rule: int
    """How groups count what they have read (core/stream.py): from 7.4 on, a trim does not raise the lag.

    From 8.0 on, a group that a trim has overtaken counts again from the first entry that is left.
    """
    denials_name_user: bool
    """7.2: the error for a command that the user may not run names the user."""
    shows_sanitizing: bool
    """7.2: ACL LIST shows sanitize-payload for users that never set it."""
    counts_denials: bool
    """7.2: INFO counts refused commands and logins, and ACL LOG has ids and times."""
    info_counts_waits: bool
    """7.2: INFO counts the keys that clients wait for."""
    client_lists_library: bool
    """7.2: CLIENT LIST shows the values of CLIENT SETINFO."""
    pushes_follow_reply: bool
    """7.2: a client's message to its own channel comes after the reply to PUBLISH; before, in front."""
    hello_shows_version: bool
    """7.2: the NOAUTH error of HELLO includes the protocol version."""
    reset_forgets_options: bool
    """7.2: RESET undoes CLIENT NO-EVICT and CLIENT NO-TOUCH."""
    cursor_is_number: bool
    """7.4: the cursor of SCAN is not empty and not negative."""
    lrem_count_has_limit: bool
    """7.4: LREM refuses the smallest 64-bit number."""
    client_lists_watches: bool
    """7.4: CLIENT LIST shows the number of keys that a client watches, and INFO counts them."""
    kill_by_age: bool
    """7.4: CLIENT KILL takes MAXAGE."""
    client_lists_thread: bool
    """8.0: CLIENT LIST shows the I/O thread of a client."""
    integers_are_shared: bool
    """Before 8.2 OBJECT REFCOUNT showed that all small integers are one object."""
    entries_read_bounded: bool
    """8.2: XGROUP lowers an ENTRIESREAD above the number of entries ever added."""
    scan_expires_all: bool
    """8.2 only, not 8.6: SCAN removes every expired key that it passes, also those that MATCH leaves out."""
    reference_options: bool
    """8.2: XADD and XTRIM take KEEPREF, DELREF and ACKED."""
    read_claims: bool
    """8.4: XREADGROUP takes CLAIM."""
    idempotent_adds: bool
    """8.6: XADD takes IDMP and IDMPAUTO, and XINFO STREAM shows what they have stored."""
    unknown_alone_is_short: bool
    """8.6: the error about an unknown command without arguments does not mention arguments."""
    shows_nacked: bool
    """8.8: XINFO STREAM FULL counts the entries that XNACK has returned to a group."""
    read_budgets: bool
    """8.10: XREAD and XREADGROUP take MAXCOUNT and MAXSIZE."""
    rdb_version: int
    """The RDB version of snapshots and DUMP, and the newest payload that RESTORE accepts."""

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
    lag_rule=LAG_COUNTS_TRIMMED,
    denials_name_user=False,
    shows_sanitizing=False,
    counts_denials=False,
    info_counts_waits=False,
    client_lists_library=False,
    pushes_follow_reply=False,
    hello_shows_version=False,
    reset_forgets_options=False,
    cursor_is_number=False,
    lrem_count_has_limit=False,
    client_lists_watches=False,
    kill_by_age=False,
    client_lists_thread=False,
    integers_are_shared=True,
    entries_read_bounded=False,
    scan_expires_all=False,
    reference_options=False,
    read_claims=False,
    idempotent_adds=False,
    unknown_alone_is_short=False,
    shows_nacked=False,
    read_budgets=False,
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
    denials_name_user=True,
    shows_sanitizing=True,
    counts_denials=True,
    info_counts_waits=True,
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
    lag_rule=LAG_SKIPS_TRIMMED,
    cursor_is_number=True,
    lrem_count_has_limit=True,
    client_lists_watches=True,
    kill_by_age=True,
    rdb_version=12,
)

_8_0 = replace(
    _7_4, version="8.0", redis_version="8.0.6", lag_rule=LAG_RECOUNTS, client_lists_thread=True
)
_8_2 = replace(
    _8_0,
    version="8.2",
    redis_version="8.2.3",
    integers_are_shared=False,
    entries_read_bounded=True,
    scan_expires_all=True,
    reference_options=True,
)
_8_4 = replace(_8_2, version="8.4", redis_version="8.4.0", read_claims=True)
_8_6 = replace(
    _8_4,
    version="8.6",
    redis_version="8.6.2",
    scan_expires_all=False,
    idempotent_adds=True,
    unknown_alone_is_short=True,
    rdb_version=13,
)
_8_8 = replace(_8_6, version="8.8", redis_version="8.8.2", shows_nacked=True, rdb_version=14)
_8_10 = replace(_8_8, version="8.10", redis_version="8.10.0", read_budgets=True, rdb_version=15)

LEVELS = {level.version: level for level in (_7_0, _7_2, _7_4, _8_0, _8_2, _8_4, _8_6, _8_8, _8_10)}
DEFAULT = LEVELS["8.6"]
NEWEST = _8_10


def level(version: str) -> Compat:
    """The row of a version. Raises: ConfigError for an unsupported one."""
    if version not in LEVELS:
        known = ", ".join(map(repr, LEVELS))
        raise ConfigError(f"compat-version is one of {known}, not {version!r}")
    return LEVELS[version]
