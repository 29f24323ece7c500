"""The methods of redis-py that work on keys of any type: names, expiry, deletion."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

from penstock.embedded import results
from penstock.embedded.signatures import Encodable, Key, Moment, PerText, Seconds, Text


class KeyMethods(PerText[Text]):
    """The key methods of redis.Redis. A Database adds `_run`."""

    __slots__ = ()

    def _run(self, name: str, pieces: list[Any], shape: Callable[[Any], Any] | None = None) -> Any:
        """Run a command given by its words and shape the reply."""
        raise NotImplementedError

    # --- Finding keys ------------------------------------------------------------------------------

    def keys(self, pattern: Encodable = "*") -> list[Text]:
        """List the keys that match a glob pattern. Looks at every key."""
        found: list[Text] = self._run("KEYS", [pattern])
        return found

    def scan(
        self,
        cursor: Encodable = 0,
        match: Encodable | None = None,
        count: int | None = None,
        _type: str | None = None,
    ) -> tuple[int, list[Text]]:
        """Return the next cursor and some keys. The first cursor is 0; a result of 0 is the end."""
        pieces: list[Any] = [cursor]
        for word, value in ((b"MATCH", match), (b"COUNT", count), (b"TYPE", _type)):
            if value is not None:
                pieces += [word, value]
        found: tuple[int, list[Text]] = self._run("SCAN", pieces, results.scanned)
        return found

    def scan_iter(
        self,
        match: Encodable | None = None,
        count: int | None = None,
        _type: str | None = None,
    ) -> Iterator[Text]:
        """Iterate over the keys with SCAN. A key may come twice if the database changes meanwhile."""
        cursor, found = self.scan(0, match, count, _type)
        yield from found
        while cursor:
            cursor, found = self.scan(cursor, match, count, _type)
            yield from found

    def exists(self, *names: Key) -> int:
        """Count how many of these keys exist. A name given twice counts twice."""
        found: int = self._run("EXISTS", [*names])
        return found

    def type(self, name: Key) -> Text:
        """Return the type of a key: "stream", "string", "list" or "none"."""
        found: Text = self._run("TYPE", [name], results.status)
        return found

    def touch(self, *args: Key) -> int:
        """Count how many of these keys exist, as `exists` does."""
        found: int = self._run("TOUCH", [*args])
        return found

    def dbsize(self) -> int:
        """Count the keys."""
        size: int = self._run("DBSIZE", [])
        return size

    # --- Changing keys -----------------------------------------------------------------------------

    def delete(self, *names: Key) -> int:
        """Delete keys; return how many existed."""
        removed: int = self._run("DEL", [*names])
        return removed

    def unlink(self, *names: Key) -> int:
        """Delete keys; return how many existed. The same as `delete`."""
        removed: int = self._run("UNLINK", [*names])
        return removed

    def rename(self, src: Key, dst: Key) -> bool:
        """Rename a key. An existing `dst` is replaced. Raises: CommandError if there is no `src`."""
        done: bool = self._run("RENAME", [src, dst], results.true)
        return done

    def renamenx(self, src: Key, dst: Key) -> bool:
        """Rename a key unless `dst` exists; return whether it was renamed."""
        done: bool = self._run("RENAMENX", [src, dst], bool)
        return done

    def flushdb(self, asynchronous: bool = False) -> bool:
        """Delete every key."""
        done: bool = self._run("FLUSHDB", [b"ASYNC"] if asynchronous else [], results.true)
        return done

    # --- Expiry ------------------------------------------------------------------------------------

    def expire(
        self,
        name: Key,
        time: Seconds,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> bool:
        """Let a key expire in `time` seconds; return whether that was set.

        nx: only if the key has no expiry. xx: only if it has one. gt, lt: only if the new expiry is later,
        earlier than the present one.
        """
        if isinstance(time, datetime.timedelta):
            time = int(time.total_seconds())
        return self._expire("EXPIRE", name, time, (nx, xx, gt, lt))

    def pexpire(
        self,
        name: Key,
        time: Seconds,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> bool:
        """As `expire`, in milliseconds."""
        if isinstance(time, datetime.timedelta):
            time = int(time.total_seconds() * 1000)
        return self._expire("PEXPIRE", name, time, (nx, xx, gt, lt))

    def expireat(
        self,
        name: Key,
        when: Moment,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> bool:
        """As `expire`, at a Unix time in seconds."""
        if isinstance(when, datetime.datetime):
            when = int(when.timestamp())
        return self._expire("EXPIREAT", name, when, (nx, xx, gt, lt))

    def pexpireat(
        self,
        name: Key,
        when: Moment,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> bool:
        """As `expire`, at a Unix time in milliseconds."""
        if isinstance(when, datetime.datetime):
            when = int(when.timestamp() * 1000)
        return self._expire("PEXPIREAT", name, when, (nx, xx, gt, lt))

    def _expire(
        self, command: str, name: Key, when: object, wanted: tuple[bool, bool, bool, bool]
    ) -> bool:
        words = ("NX", "XX", "GT", "LT")
        options: list[str] = [word for word, given in zip(words, wanted, strict=True) if given]
        done: bool = self._run(command, [name, when, *options], bool)
        return done

    def persist(self, name: Key) -> bool:
        """Remove the expiry of a key; False if it has none."""
        done: bool = self._run("PERSIST", [name], bool)
        return done

    def ttl(self, name: Key) -> int:
        """Return the seconds until a key expires; -1 without expiry, -2 without the key."""
        seconds: int = self._run("TTL", [name])
        return seconds

    def pttl(self, name: Key) -> int:
        """As `ttl`, in milliseconds."""
        milliseconds: int = self._run("PTTL", [name])
        return milliseconds

    def expiretime(self, key: Key) -> int:
        """Return the Unix time in seconds when a key expires; -1 without expiry, -2 without the key."""
        seconds: int = self._run("EXPIRETIME", [key])
        return seconds

    def pexpiretime(self, key: Key) -> int:
        """As `expiretime`, in milliseconds."""
        milliseconds: int = self._run("PEXPIRETIME", [key])
        return milliseconds
