"""The manifest lists the files of the log, in order.

    file appendonly.aof.2.base.rdb seq 2 type b bytes 310 crc 6f0e25d4aab11c07
    file appendonly.aof.4.incr.aof seq 4 type i bytes 1042 crc 5c206372
    file appendonly.aof.5.incr.aof seq 5 type i
    file appendonly.aof.3.incr.aof seq 3 type h
    #PSCRC:1a2b3c4d

    type b      the base: a snapshot (.rdb) or commands (.aof)
    type i      the increments: the effects since the base, in this order
    type h      history: no longer needed, may be removed
    #PSCRC      the checksum of the lines above

This is Redis's format. To Redis the last line is a comment. It protects the manifest: without it, one flipped
bit could turn an increment into history unnoticed. A manifest without that line was written by Redis and is
accepted.

`bytes` and `crc` (file_crc.py) describe a file that is no longer written: all except the last while a server
runs, all of them after a clean stop. A start compares them with the files. So it refuses a file that was
replaced by an older one or lost its last batches, even if every batch in it is valid. Redis ignores both.

A manifest is never changed in place. A new one is written to another file, synced and renamed, and the
directory is synced. So there is always one complete manifest.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from penstock.errors import CorruptData, ProtocolError
from penstock.persist.disk import Disk
from penstock.persist.reading import read_all
from penstock.wire.parser import split_words
from penstock.wire.quoting import quoted

MANIFEST_BYTES_MAX = 1 << 20
_BASE, _INCREMENT, _HISTORY = "b", "i", "h"
_REMEDY = "restore it from a copy, or see what is left with penstock check --repair"
_NUMBER = re.compile(r"[0-9]{1,18}")
_CHECKSUM = re.compile(rb"#PSCRC:([0-9a-f]{8})\n\Z")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the log."""

    name: str
    seq: int
    size: int | None = field(default=None, compare=False)  # None while it is being written
    crc: str | None = field(default=None, compare=False)  # likewise, and of files of Redis

    @property
    def is_snapshot(self) -> bool:
        """Whether it is a snapshot by its name. Readers look at the first bytes instead."""
        return self.name.endswith(".rdb")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a log. `base` is None before the first base; `history` may be removed."""

    base: LogFile | None = None
    increments: tuple[LogFile, ...] = ()
    history: tuple[LogFile, ...] = ()
    is_ours: bool = field(
        default=False, compare=False
    )  # it was read from a file that penstock wrote

    @property
    def files(self) -> list[LogFile]:
        """The files to read, in order."""
        return [*([self.base] if self.base else []), *self.increments]

    def next_base(self, filename: str, form: str = "rdb", above: int = 0) -> LogFile:
        """A name for a new base. Its number is above `above`, the last one used."""
        first = max(above, self.base.seq if self.base else 0) + 1
        return self._unused(first, lambda seq: f"{filename}.{seq}.base.{form}")

    def next_increment(self, filename: str, above: int = 0) -> LogFile:
        """A name for a new increment. Its number is above `above`, the last one used."""
        first = max([above, *(file.seq for file in self.increments)]) + 1
        return self._unused(first, lambda seq: f"{filename}.{seq}.incr.aof")

    def _unused(self, first: int, name_of: Callable[[int], str]) -> LogFile:
        """The first number whose name is not listed: in Redis's manifests name and number may differ."""
        listed = {file.name for file in (*self.files, *self.history)}
        seq = next(seq for seq in itertools.count(first) if name_of(seq) not in listed)
        return LogFile(name_of(seq), seq)

    def with_increment(self, file: LogFile, last: LogFile | None = None) -> Manifest:
        """Add an increment. `last`: the previous one, now complete."""
        before = self.increments if last is None else (*self.increments[:-1], last)
        return Manifest(self.base, (*before, file), self.history)

    def with_last(self, last: LogFile) -> Manifest:
        """Replace the entry of the last increment."""
        return replace(self, increments=(*self.increments[:-1], last))

    def rebased(self, base: LogFile, increments: tuple[LogFile, ...]) -> Manifest:
        """Replace everything except these increments by a new base."""
        kept = {base, *increments}
        return Manifest(base, increments, tuple(file for file in self.files if file not in kept))


def path_of(directory: str, filename: str) -> str:
    """The path of a log's manifest."""
    return f"{directory}/{filename}.manifest"


def encode_manifest(manifest: Manifest) -> bytes:
    """The text of a manifest."""
    lines = [
        f"file {_word(file.name)} seq {file.seq} type {kind}{_sized(file)}\n"
        for kind, files in (
            (_BASE, [manifest.base] if manifest.base else []),
            (_HISTORY, manifest.history),
            (_INCREMENT, manifest.increments),
        )
        for file in files
    ]
    text = "".join(lines).encode("utf-8", "surrogateescape")
    return text + b"#PSCRC:%08x\n" % zlib.crc32(text)


def _sized(file: LogFile) -> str:
    size = "" if file.size is None else f" bytes {file.size}"
    return size if file.crc is None else f"{size} crc {file.crc}"


def _word(name: str) -> str:
    """A name, quoted if `split_words` needs that."""
    is_plain = re.fullmatch(r"[\w.+-]+", name, re.ASCII)
    return name if is_plain else quoted(name.encode("utf-8", "surrogateescape"))


def save_manifest(disk: Disk, directory: str, filename: str, manifest: Manifest) -> None:
    """Replace the manifest durably."""
    path = path_of(directory, filename)
    temporary = f"{directory}/temp-{filename}.manifest"
    file = disk.create(temporary)
    try:
        file.write(encode_manifest(manifest))
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.sync_dir(directory)


def load_manifest(disk: Disk, directory: str, filename: str) -> Manifest:
    """Read a manifest. Raises: CorruptData, OSError."""
    path = path_of(directory, filename)
    if disk.size(path) > MANIFEST_BYTES_MAX:
        raise CorruptData(
            f"{path}: it is larger than {MANIFEST_BYTES_MAX} bytes, so it is not a manifest", 0
        )
    return parse_manifest(read_all(disk, path), path)


def parse_manifest(text: bytes, path: str) -> Manifest:
    """Parse a manifest. Raises: CorruptData."""
    checksum = _CHECKSUM.search(text)
    lines = text
    if checksum is not None:
        lines = text[: checksum.start()]
        if zlib.crc32(lines) != int(checksum[1], 16):
            raise CorruptData(
                f"{path}: the checksum does not match the lines above it: {_REMEDY}", 0
            )
    elif b"#PSCRC" in text or b" bytes " in text or not text.endswith(b"\n"):
        # Redis writes no `bytes`, so this one is ours and has lost its last line, and perhaps more.
        raise CorruptData(f"{path}: it is cut off or damaged: {_REMEDY}", len(text))
    found: dict[str, list[LogFile]] = {_BASE: [], _INCREMENT: [], _HISTORY: []}
    offset = 0
    for line in lines.splitlines(keepends=True):
        if not line.startswith(b"#"):
            kind, file = _parse_line(line, path, offset)
            found[kind].append(file)
        offset += len(line)
    return replace(_checked(found, path), is_ours=checksum is not None)


@dataclass(frozen=True, slots=True)
class Salvage:
    """The readable lines of a damaged manifest, and an error for each of the others."""

    bases: tuple[LogFile, ...]
    increments: tuple[LogFile, ...]
    history: tuple[LogFile, ...]
    unreadable: tuple[CorruptData, ...]


def salvage_manifest(text: bytes, path: str) -> Salvage:
    """Read every line that names a file, and sort the files by number."""
    found: dict[str, dict[str, LogFile]] = {_BASE: {}, _INCREMENT: {}, _HISTORY: {}}
    unreadable = []
    offset = 0
    for line in text.splitlines(keepends=True):
        if not line.startswith(b"#"):
            try:
                kind, file = _parse_line(line, path, offset)
                found[kind][file.name] = file
            except CorruptData as error:
                unreadable.append(error)
        offset += len(line)
    bases, increments, history = (
        tuple(sorted(files.values(), key=lambda file: file.seq)) for files in found.values()
    )
    return Salvage(bases, increments, history, tuple(unreadable))


def _parse_line(line: bytes, path: str, offset: int) -> tuple[str, LogFile]:
    """Parse `file NAME seq N type T`. The pairs may come in any order."""
    try:
        words = [word.decode("utf-8", "surrogateescape") for word in split_words(line)]
    except ProtocolError as error:
        raise CorruptData(f"{path}: a quote is never closed: {_REMEDY}", offset) from error
    parts = dict(zip(words[::2], words[1::2], strict=False))
    name, seq, kind = parts.get("file", ""), parts.get("seq", ""), parts.get("type", "")
    if len(words) % 2 or not name or "/" in name or "\0" in name or name in (".", ".."):
        raise CorruptData(
            f"{path}: a line does not name a file of this directory: {_REMEDY}", offset
        )
    if not _NUMBER.fullmatch(seq) or int(seq) == 0 or kind not in (_BASE, _INCREMENT, _HISTORY):
        raise CorruptData(
            f"{path}: the line of {name} needs a seq above 0 and a type b, i or h: {_REMEDY}",
            offset,
        )
    size = parts.get("bytes", "")
    return kind, LogFile(
        name, int(seq), int(size) if _NUMBER.fullmatch(size) else None, parts.get("crc")
    )


def _checked(found: dict[str, list[LogFile]], path: str) -> Manifest:
    bases, increments = found[_BASE], found[_INCREMENT]
    if len(bases) > 1:
        both = " and ".join(file.name for file in bases)
        raise CorruptData(f"{path}: two bases, {both}: remove the line of the wrong one", 0)
    if not bases and not increments:
        raise CorruptData(f"{path}: it names no files: {_REMEDY}", 0)
    for before, after in itertools.pairwise(increments):
        if before.seq >= after.seq:
            raise CorruptData(
                f"{path}: {after.name} comes after {before.name}, out of order: {_REMEDY}", 0
            )
    names = [file.name for files in found.values() for file in files]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CorruptData(f"{path}: it names {twice} twice: {_REMEDY}", 0)
    return Manifest(bases[0] if bases else None, tuple(increments), tuple(found[_HISTORY]))
