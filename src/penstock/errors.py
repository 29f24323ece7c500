"""The exceptions of penstock and the texts of its errors.

    PenstockError
      DataError         an argument that no command can carry; raised before a command runs
      CommandError      a refused command; has the wire code (ERR, NOGROUP, ...). Nothing has changed, except
                        with the text of outcome_unknown(): the disk failed after the change
      ProtocolError     bytes that are not RESP; the client gets the error, then the connection is closed
      CoreError         a structure of core refuses a change, or a text is not an id; has no wire code. Its
                        subclasses: InvalidID, NoIDAbove, NoIDBelow, IDNotAboveLast, IDsExhausted, TooLarge
      CorruptData       damaged data: where, what was found, what was expected; the data must not be used
      UnreadableValue   a field that does not fit the type of its column, where that is set to be an error
      ConnectionLost    a server could not be reached or closed the connection
      ConfigError       a refused setting; the text names the setting and the allowed values
      DirectoryInUse    another process or Database has the data directory open
      DatabaseClosed    a Database was used after close(), or in a forked copy of its process
      WatchError        a key that a pipeline watches has changed; nothing has run
    InvariantBroken     (an AssertionError) raised only by check_*: a bug in penstock

`str()` of a CommandError is the text without the code ERR, as in redis-py. `wire_text` is the whole line as
it goes over the wire. A text that several places need is built by a function below. A text for a single
option is where that option is read.
"""

from __future__ import annotations

_QUOTED_BYTES_MAX = 128  # the most bytes of a client's arguments that an error quotes


class PenstockError(Exception):
    """The base of all exceptions that penstock raises on purpose."""


class DataError(PenstockError):
    """An argument of the wrong type, found before the command runs (redis-py's name and texts)."""


class CommandError(PenstockError):
    """A refused command. Nothing has changed, but see outcome_unknown()."""

    def __init__(self, text: str, code: str = "ERR") -> None:
        self.code = code
        self.wire_text = f"{code} {text}"
        visible = text if code == "ERR" else self.wire_text
        if not visible.isascii():
            # A quoted name is not UTF-8. The wire text keeps its bytes, the text for people cannot.
            visible = visible.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        super().__init__(visible)


class ProtocolError(PenstockError):
    """Bytes that are not a command. The bytes after them cannot be parsed either."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Protocol error: {text}")


class CoreError(PenstockError):
    """A structure of core refuses a change and stays as it was. The engine raises a CommandError instead."""


class InvalidID(CoreError):
    """A text is not a stream id."""


class NoIDAbove(CoreError):
    """A range starts after the largest id."""


class NoIDBelow(CoreError):
    """A range ends before the smallest id."""


class IDNotAboveLast(CoreError):
    """A new entry's id is not above the last id of its stream."""


class IDsExhausted(CoreError):
    """The stream's last id is the largest one, so no entry can be added."""


class TooLarge(CoreError):
    """An entry or an element is larger than its structure can hold."""


class CorruptData(PenstockError):
    """Damaged data: what was found, at which offset, and in which file if it is in a file."""

    def __init__(self, what: str, offset: int, path: str = "") -> None:
        place = f"{path}: " if path else ""
        super().__init__(f"{place}{what} (at byte {offset})")
        self.what = what
        self.offset = offset
        self.path = path


class UnreadableValue(PenstockError):
    """A field of an entry that does not fit the type of its column."""


class ConnectionLost(PenstockError):
    """A server could not be reached, or closed the connection before its reply was complete."""


class ConfigError(PenstockError):
    """A refused setting."""


class DatabaseClosed(PenstockError):
    """The database is closed, or was opened before this process was forked."""


class WatchError(PenstockError):
    """A key that a pipeline watches has changed, so nothing has run (redis-py's name and text)."""


class DirectoryInUse(PenstockError):
    """Another process, or another Database of this process, has the directory open."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"{directory} is in use by another server or penstock.open(): stop that one, or use another"
            " directory"
        )


class InvariantBroken(AssertionError):
    """A structure breaks one of its documented invariants: a bug in penstock. Has the invariant's number."""


def loading() -> CommandError:
    return CommandError("Redis is loading the dataset in memory", "LOADING")


def disk_failed(why: str) -> CommandError:
    return CommandError(f"Errors writing to the AOF file: {why}", "MISCONF")


def broken_off() -> CommandError:
    return CommandError(
        "A command was interrupted half-way, so the data in memory cannot be trusted. The server stops;"
        " everything it has acknowledged is in its log",
        "MISCONF",
    )


def outcome_unknown(why: str) -> CommandError:
    return CommandError(
        f"Errors writing to the AOF file: {why}. Whether this command will be there after a restart is"
        " unknown",
        "MISCONF",
    )


def snapshots_fail() -> CommandError:
    return CommandError(
        "Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands"
        " that may modify the data set are disabled, because this instance is configured to report errors"
        " during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the"
        " Redis logs for details about the RDB error.",
        "MISCONF",
    )


def invalid_stream_id() -> CommandError:
    return CommandError("Invalid stream ID specified as stream command argument")


def id_not_above_zero() -> CommandError:
    return CommandError("The ID specified in XADD must be greater than 0-0")


def id_not_above_top() -> CommandError:
    return CommandError(
        "The ID specified in XADD is equal or smaller than the target stream top item"
    )


def ids_exhausted() -> CommandError:
    return CommandError("The stream has exhausted the last possible ID, unable to add more items")


def elements_too_large() -> CommandError:
    return CommandError("Elements are too large to be stored")


def xsetid_below(what: str) -> CommandError:
    return CommandError(f"The ID specified in XSETID is smaller than {what}")


def syntax_error(detail: str = "") -> CommandError:
    return CommandError(f"syntax error, {detail}" if detail else "syntax error")


def wrong_type() -> CommandError:
    return CommandError("Operation against a key holding the wrong kind of value", "WRONGTYPE")


def wrong_arity(name: str) -> CommandError:
    """A subcommand is shown as `xgroup|create`."""
    shown = name.lower().replace(" ", "|")
    return CommandError(f"wrong number of arguments for '{shown}' command")


def exec_refused(error: CommandError) -> CommandError:
    """The error of an EXEC that cannot start."""
    reason = error.wire_text.removeprefix("ERR ")
    return CommandError(f"Transaction discarded because of: {reason}", "EXECABORT")


def no_such_command(name: bytes, words: list[bytes], alone_is_short: bool = False) -> CommandError:
    """`words` are the arguments. The text shows 128 bytes of the name and 128 of all arguments together.

    With `alone_is_short` it does not mention arguments if there are none.
    """
    if alone_is_short and not words:
        return CommandError(f"unknown command '{shown(name[:_QUOTED_BYTES_MAX])}'")
    quoted = b""
    for word in words:
        if len(quoted) >= _QUOTED_BYTES_MAX:
            break
        quoted += b"'%b' " % word.split(b"\0", 1)[0][: _QUOTED_BYTES_MAX - len(quoted)]
    return CommandError(
        f"unknown command '{shown(name[:_QUOTED_BYTES_MAX])}',"
        f" with args beginning with: {shown(quoted)}"
    )


def no_such_subcommand(container: str, word: bytes) -> CommandError:
    return CommandError(
        f"unknown subcommand '{shown(word[:_QUOTED_BYTES_MAX])}'. Try {container} HELP."
    )


def unknown_subcommand(container: str, word: bytes) -> CommandError:
    return CommandError(
        f"unknown subcommand or wrong number of arguments for '{shown(word)}'. Try {container} HELP."
    )


def invalid_client_name() -> CommandError:
    return CommandError("Client names cannot contain spaces, newlines or special characters.")


def wrong_password() -> CommandError:
    return CommandError("invalid username-password pair or user is disabled.", "WRONGPASS")


def internal_error() -> CommandError:
    return CommandError("internal error, the connection is closed")


def not_an_integer() -> CommandError:
    return CommandError("value is not an integer or out of range")


def not_a_float() -> CommandError:
    return CommandError("value is not a valid float")


def string_too_long() -> CommandError:
    return CommandError("string exceeds maximum allowed size (proto-max-bulk-len)")


def invalid_expire_time(command: str) -> CommandError:
    return CommandError(f"invalid expire time in '{command}' command")


def no_such_database() -> CommandError:
    return CommandError("DB index is out of range")


def same_object() -> CommandError:
    return CommandError("source and destination objects are the same")


def stream_gone_while_blocked() -> CommandError:
    return CommandError("the stream key no longer exists", "UNBLOCKED")


def no_such_key() -> CommandError:
    return CommandError("no such key")


def no_such_group(key: bytes, group: bytes) -> CommandError:
    return CommandError(f"No such key '{shown(key)}' or consumer group '{shown(group)}'", "NOGROUP")


def no_such_group_in_read(key: bytes, group: bytes) -> CommandError:
    return CommandError(
        f"No such key '{shown(key)}' or consumer group '{shown(group)}'"
        " in XREADGROUP with GROUP option",
        "NOGROUP",
    )


def no_group_for_key(key: bytes, group: bytes) -> CommandError:
    return CommandError(
        f"No such consumer group '{shown(group)}' for key name '{shown(key)}'", "NOGROUP"
    )


def group_gone_while_blocked() -> CommandError:
    return CommandError("the consumer group this client was blocked on no longer exists", "NOGROUP")


def group_exists() -> CommandError:
    return CommandError("Consumer Group name already exists", "BUSYGROUP")


def group_needs_key() -> CommandError:
    return CommandError(
        "The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use"
        " the MKSTREAM option to create an empty stream automatically."
    )


def only_in_group_read(option: str) -> CommandError:
    return CommandError(
        f"The {option} option is only supported by XREADGROUP. You called XREAD instead."
    )


def meaningless_in_group_read(word: str) -> CommandError:
    return CommandError(
        f"The {word} ID is meaningless in the context of XREADGROUP: you want to read the history of"
        " this consumer by specifying a proper ID, or use the > ID to get new messages."
        f" The {word} ID would just return an empty result set."
    )


def greater_only_in_group_read() -> CommandError:
    return CommandError(
        "The > ID can be specified only when calling XREADGROUP using the GROUP <group>"
        " <consumer> option."
    )


def unbalanced_streams(command: str, special: str) -> CommandError:
    return CommandError(
        f"Unbalanced {command} list of streams: for each stream key an ID{special} must be specified."
    )


def shown(name: bytes) -> str:
    """A name inside a text: up to its first NUL, as C prints it, and on one line."""
    line = name.split(b"\0", 1)[0].replace(b"\r", b" ").replace(b"\n", b" ")
    return line.decode("utf-8", "surrogateescape")
