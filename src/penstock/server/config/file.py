"""Reads files in redis.conf's syntax, and updates them (CONFIG REWRITE).

    # a comment
    port 6379
    requirepass "with \\x20 spaces"         quotes and escapes as in redis-cli
    include conf.d/*.conf                   replaced by the files; paths are relative to the working directory
    save 900 1                              repeated lines add up or replace, depending on the directive

The command line has the same directives with two dashes: --port 6379 --bind 127.0.0.1 ::1 --save ""
"""

from __future__ import annotations

import glob
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.errors import ConfigError, ProtocolError
from penstock.persist.disk import SystemDisk, SystemFile
from penstock.server.config.settings import USER_LINE, Config, Setting
from penstock.wire.parser import split_words

INCLUDE_DEPTH_MAX = 16
FILE_BYTES_MAX = 16 << 20
COMMAND_LINE = "command line"
_MARK = "# Written by CONFIG REWRITE"
_PRIVATE = 0o600


def read_file(path: str, depth: int = 0) -> Iterator[Setting]:
    """The settings of a file and of the files it includes, in order. Raises: ConfigError."""
    if depth > INCLUDE_DEPTH_MAX:
        raise ConfigError(f"{path}: included {depth} levels deep: does a file include itself?")
    for number, line in enumerate(_read(path).split("\n"), 1):
        place = f"{path}:{number}"
        words = _words(line, place)
        if not words:
            continue
        name = words[0].lower()
        if name != "include":
            yield Setting(name, tuple(words[1:]), place)
            continue
        if len(words) != 2:
            raise ConfigError(f"{place}: include takes one path")
        for included in _included(words[1]):
            yield from read_file(included, depth + 1)


def _read(path: str) -> str:
    try:
        if Path(path).stat().st_size > FILE_BYTES_MAX:
            raise ConfigError(
                f"{path}: larger than {FILE_BYTES_MAX} bytes: not a configuration file"
            )
        return Path(path).read_text(errors="surrogateescape")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def _words(line: str, place: str) -> list[str]:
    line = line.strip()
    if not line or line.startswith("#"):
        return []
    try:
        words = split_words(line.encode(errors="surrogateescape"))
    except ProtocolError:
        # Show only the name: without the closing quote, a secret value has no known end.
        raise ConfigError(f"{place}: {line.split()[0]}: unbalanced quotes") from None
    return [word.decode(errors="surrogateescape") for word in words]


def _included(pattern: str) -> list[str]:
    """The files that `include` names. A pattern may match none, as in Redis."""
    if not glob.has_magic(pattern):
        return [pattern]
    return sorted(glob.glob(pattern))  # noqa: PTH207 - the pattern may be absolute


def read_command_line(words: Sequence[str]) -> Iterator[Setting]:
    """--name value ... --name value ... Raises: ConfigError for a value without a name."""
    name: str | None = None
    values: list[str] = []
    for word in words:
        if word.startswith("--") and len(word) > 2:
            if name is not None:
                yield Setting(name, tuple(values), COMMAND_LINE)
            name, values = word[2:].lower(), []
        elif name is None:
            raise ConfigError(f"{COMMAND_LINE}: {word}: expected --DIRECTIVE VALUE")
        else:
            values.append(word)
    if name is not None:
        yield Setting(name, tuple(values), COMMAND_LINE)


# --- Writing -----------------------------------------------------------------------------------------


def rewrite(config: Config, path: str, users: Sequence[str] = ()) -> None:
    """Update a file with the values in force. Comments, order and ignored directives stay.

    A directive in the file keeps its (first) line and gets its current value. A directive that is not in the
    file is added at the end if it differs from its default. The file is replaced atomically. `users`: the
    lines of the users, which replace those in the file.
    """
    pending = {
        row.name: _lines(config, row.name)
        for row in config.vocabulary.directives
        if not config.is_default(row)
    }
    pending[USER_LINE] = list(users)
    kept: list[str] = []
    written: set[str] = set()
    for line in _read(path).rstrip("\n").split("\n"):
        words = _words(line, path)
        if words and words[0].lower() == USER_LINE:
            kept.extend(pending.pop(USER_LINE, []))
            continue
        row = config.directives.get(words[0].lower()) if words else None
        if row is None:
            kept.append(line)
        elif row.name not in written:
            written.add(row.name)
            kept.extend(pending.pop(row.name, []) or _lines(config, row.name))
    if any(pending.values()) and _MARK not in kept:
        kept.append(_MARK)
    for lines in pending.values():
        kept.extend(lines)
    replace_file(path, ("\n".join(kept) + "\n").encode(errors="surrogateescape"))


def _lines(config: Config, name: str) -> list[str]:
    row = config.directives[name]
    return [f"{name} {_quoted(line, row.kind.many)}" for line in row.kind.lines(config.value(name))]


def _quoted(text: str, many: bool) -> str:
    """Quote a value so that `split_words` reads it back. Values of several words are quoted already."""
    if many and text:
        return text
    if text and all(33 <= ord(char) < 127 and char not in "\"'\\" for char in text):
        return text
    raw = text.encode(errors="surrogateescape")
    shown = (
        f"\\x{byte:02x}" if byte < 32 or byte > 126 or chr(byte) in '"\\' else chr(byte)
        for byte in raw
    )
    return '"' + "".join(shown) + '"'


def replace_file(path: str, data: bytes) -> None:
    """Replace a file atomically and durably. Raises: OSError.

    The new file gets the mode and owner of the old one. Until then no other user can open it: it may contain
    a password. A symbolic link stays, and its target is replaced.
    """
    target = Path(path).resolve()
    before = target.stat()
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
    # O_EXCL: never write to a file or link that another user has put there.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    fd = os.open(temporary, flags, _PRIVATE)
    file = SystemFile(fd)
    try:
        try:
            file.write(data)
            _copy_rights(fd, before)
            file.sync()
        finally:
            file.close()
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    SystemDisk().sync_dir(str(target.parent))


def _copy_rights(fd: int, before: os.stat_result) -> None:
    """Copy owner and mode from the file that is replaced; never grant more rights than it did."""
    mode = stat.S_IMODE(before.st_mode)
    try:
        os.fchown(fd, before.st_uid, before.st_gid)
    except PermissionError:
        if os.fstat(fd).st_gid != before.st_gid:
            mode &= ~stat.S_IRWXG  # the old group's rights are not meant for our group
    os.fchmod(fd, mode)
