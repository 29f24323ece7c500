"""The methods of redis-py for groups, consumers and pending entries; reading is in database.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from penstock.embedded import arguments, results
from penstock.embedded.signatures import (
    AutoClaimed,
    Entry,
    EntryId,
    EntryIds,
    Key,
    NackMode,
    PendingEntry,
    PendingSummary,
    PerText,
    Text,
)
from penstock.errors import DataError


class GroupMethods(PerText[Text]):
    """The group methods of redis.Redis. A Database adds `_run`."""

    __slots__ = ()

    def _run(self, name: str, pieces: list[Any], shape: Callable[[Any], Any] | None = None) -> Any:
        """Run a command given by its words and shape the reply."""
        raise NotImplementedError

    # --- Groups ------------------------------------------------------------------------------------

    def xgroup_create(
        self,
        name: Key,
        groupname: Key,
        id: EntryId = "$",
        mkstream: bool = False,
        entries_read: int | None = None,
    ) -> bool:
        """Create a group that starts after `id`."""
        pieces = [name, groupname, id]
        if mkstream:
            pieces.append(b"MKSTREAM")
        if entries_read is not None:
            pieces += [b"ENTRIESREAD", entries_read]
        done: bool = self._run("XGROUP CREATE", pieces, results.true)
        return done

    def xgroup_setid(
        self, name: Key, groupname: Key, id: EntryId, entries_read: int | None = None
    ) -> bool:
        """Set the last delivered id of a group."""
        pieces = [name, groupname, id]
        if entries_read is not None:
            pieces += [b"ENTRIESREAD", entries_read]
        done: bool = self._run("XGROUP SETID", pieces, results.true)
        return done

    def xgroup_destroy(self, name: Key, groupname: Key) -> bool:
        """Delete a group; False if there is none."""
        done: bool = self._run("XGROUP DESTROY", [name, groupname], bool)
        return done

    def xgroup_createconsumer(self, name: Key, groupname: Key, consumername: Key) -> int:
        """Create a consumer; return 0 if it exists already."""
        made: int = self._run("XGROUP CREATECONSUMER", [name, groupname, consumername])
        return made

    def xgroup_delconsumer(self, name: Key, groupname: Key, consumername: Key) -> int:
        """Delete a consumer; return how many pending entries it had."""
        dropped: int = self._run("XGROUP DELCONSUMER", [name, groupname, consumername])
        return dropped

    # --- Pending entries ---------------------------------------------------------------------------

    def xpending(self, name: Key, groupname: Key) -> PendingSummary:
        """Summarize the pending entries of a group."""
        summary: PendingSummary = self._run("XPENDING", [name, groupname], results.pending_summary)
        return summary

    @overload
    def xpending_range(
        self,
        name: Key,
        groupname: Key,
        min: EntryId,
        max: EntryId,
        count: int,
        consumername: Key | None = None,
        idle: int | None = None,
    ) -> list[PendingEntry]: ...

    @overload
    def xpending_range(
        self, name: Key, groupname: Key, min: None, max: None, count: None
    ) -> PendingSummary: ...

    def xpending_range(
        self,
        name: Key,
        groupname: Key,
        min: EntryId | None,
        max: EntryId | None,
        count: int | None,
        consumername: Key | None = None,
        idle: int | None = None,
    ) -> list[PendingEntry] | PendingSummary:
        """Return the pending entries from `min` to `max`, a dictionary each; the summary without a range."""
        if {min, max, count} == {None}:
            if idle is not None or consumername is not None:
                raise DataError(
                    "if XPENDING is provided with idle time or consumername,"
                    " it must be provided with min, max and count parameters"
                )
            return self.xpending(name, groupname)
        if min is None or max is None or count is None:
            raise DataError(
                "XPENDING must be provided with min, max and count parameters, or none of them."
            )
        pieces: list[Any] = [name, groupname]
        if arguments.is_counted("XPENDING idle must be a integer >= 0", idle):
            pieces += [b"IDLE", idle]
        arguments.is_counted("XPENDING count must be a integer >= 0", count)
        pieces += [min, max, count]
        if consumername:
            pieces.append(consumername)
        rows: list[PendingEntry] = self._run("XPENDING", pieces, results.pending_rows)
        return rows

    @overload
    def xclaim(
        self,
        name: Key,
        groupname: Key,
        consumername: Key,
        min_idle_time: int,
        message_ids: EntryIds,
        idle: int | None = None,
        time: int | None = None,
        retrycount: int | None = None,
        force: bool = False,
        justid: Literal[False] = False,
    ) -> list[Entry[Text]]: ...

    @overload
    def xclaim(
        self,
        name: Key,
        groupname: Key,
        consumername: Key,
        min_idle_time: int,
        message_ids: EntryIds,
        idle: int | None = None,
        time: int | None = None,
        retrycount: int | None = None,
        force: bool = False,
        *,
        justid: Literal[True],
    ) -> list[Text]: ...

    def xclaim(
        self,
        name: Key,
        groupname: Key,
        consumername: Key,
        min_idle_time: int,
        message_ids: EntryIds,
        idle: int | None = None,
        time: int | None = None,
        retrycount: int | None = None,
        force: bool = False,
        justid: bool = False,
    ) -> list[Entry[Text]] | list[Text]:
        """Give pending entries to a consumer; return a list of (id, fields), or of ids with `justid`."""
        if not isinstance(min_idle_time, int) or min_idle_time < 0:
            raise DataError("XCLAIM min_idle_time must be a non negative integer")
        if not isinstance(message_ids, (list, tuple)) or not message_ids:
            raise DataError(
                "XCLAIM message_ids must be a non empty list or tuple of message IDs to claim"
            )
        pieces = [name, groupname, consumername, str(min_idle_time), *message_ids]
        options = {"idle": idle, "time": time, "retrycount": retrycount}
        for option, value in options.items():
            if value is not None:
                if not isinstance(value, int):
                    raise DataError(f"XCLAIM {option} must be an integer")
                pieces += [option.upper(), str(value)]
        for option, wanted in {"force": force, "justid": justid}.items():
            if wanted:
                if not isinstance(wanted, bool):
                    raise DataError(f"XCLAIM {option} must be a boolean")
                pieces.append(option.upper())
        claimed: list[Entry[Text]] = self._run(
            "XCLAIM", pieces, results.as_it_is if justid else results.entries
        )
        return claimed

    @overload
    def xautoclaim(
        self,
        name: Key,
        groupname: Key,
        consumername: Key,
        min_idle_time: int,
        start_id: EntryId = "0-0",
        count: int | None = None,
        justid: Literal[False] = False,
    ) -> AutoClaimed[Text]: ...

    @overload
    def xautoclaim(
        self,
        name: Key,
        groupname: Key,
        consumername: Key,
        min_idle_time: int,
        start_id: EntryId = "0-0",
        count: int | None = None,
        *,
        justid: Literal[True],
    ) -> list[Text]: ...

    def xautoclaim(
        self,
        name: Key,
        groupname: Key,
        consumername: Key,
        min_idle_time: int,
        start_id: EntryId = "0-0",
        count: int | None = None,
        justid: bool = False,
    ) -> AutoClaimed[Text] | list[Text]:
        """Give idle entries to a consumer.

        Returns [next id, entries, deleted ids], or a list of ids with `justid`.
        """
        arguments.is_counted(
            "XAUTOCLAIM min_idle_time must be a nonnegative integer", min_idle_time
        )
        pieces: list[Any] = [name, groupname, consumername, min_idle_time, start_id]
        if arguments.is_counted("XPENDING count must be a integer >= 0", count):
            pieces += [b"COUNT", count]
        if justid:
            pieces.append(b"JUSTID")
        claimed: AutoClaimed[Text] = self._run(
            "XAUTOCLAIM", pieces, results.autoclaimed_ids if justid else results.autoclaimed
        )
        return claimed

    def xnack(
        self,
        name: Key,
        groupname: Key,
        mode: NackMode,
        *ids: EntryId,
        retrycount: int | None = None,
        force: bool = False,
    ) -> int:
        """Return deliveries to the group, for any consumer to claim at once; return how many. Redis 8.8.

        mode: "FAIL" leaves the number of deliveries as it is, "SILENT" lowers it by one, "FATAL" sets it to
        the maximum. retrycount: set it to this. force: also entries that are not pending.
        """
        if not ids:
            raise DataError("XNACK requires at least one message ID")
        if mode not in arguments.NACK_MODES:
            raise DataError("XNACK mode must be one of: SILENT, FAIL, FATAL")
        pieces = [name, groupname, mode, b"IDS", len(ids), *ids]
        if retrycount is not None:
            if retrycount < 0:
                raise DataError("XNACK retrycount must be >= 0")
            pieces += [b"RETRYCOUNT", retrycount]
        if force:
            pieces.append(b"FORCE")
        returned: int = self._run("XNACK", pieces)
        return returned
