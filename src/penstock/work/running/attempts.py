"""Runs a handler for the entries of one attempt, and says how it ended."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Sequence
from typing import Any

from penstock.work import tracing
from penstock.work.feed import Entry
from penstock.work.handler import Handler
from penstock.work.message import Dead, Message, Source
from penstock.work.payload import BadPayload, key_of, text_of
from penstock.work.settlement import ACK, DEAD, RETRY, Outcome

REASON_LINE_MAX = 500


class Attempt:
    """One call of a handler: the entries that can be read, and the outcomes of those that cannot."""

    def __init__(self, handler: Handler[Any], source: Source, entries: Sequence[Entry]) -> None:
        self._handler = handler
        self._pid = os.getpid()
        self.entries: list[Entry] = []
        self._outcomes: list[Outcome] = []
        payloads: list[Any] = []
        key = None
        for entry in entries:
            try:
                payload = handler.payload.decode(entry.fields) if handler.takes_payload else None
                if handler.options.key is not None:
                    key = key_of(payload, handler.options.key)
            except BadPayload as error:
                self._outcomes.append(Outcome(entry.id, entry.attempt, DEAD, reason=str(error)))
            else:
                payloads.append(payload)
                self.entries.append(entry)
        ids = [entry.id for entry in self.entries]
        attempt = self.entries[0].attempt if self.entries else 0
        self._message = Message(source, ids, attempt, key)
        self._payload = payloads
        if handler.options.batch is None and payloads:
            self._payload = payloads[0]

    def run(self) -> list[Outcome]:
        """Call a plain function."""
        if self.entries:
            try:
                with tracing.attempting(self._message.stream, self.entries):
                    self._handler.function(*self._arguments())
            except BaseException as error:  # noqa: BLE001 - SystemExit of a handler is a failure too
                self._end_fork(error)
                return self._outcomes + failed(self._handler, self.entries, error)
        return self._done()

    async def run_async(self) -> list[Outcome]:
        """Call an async function. If a stop cancels it, the entries are given back."""
        if self.entries:
            try:
                with tracing.attempting(self._message.stream, self.entries):
                    await self._call()
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    return self._outcomes + given_back(self.entries)
                # The handler raised it, or awaited something that was cancelled.
                return self._outcomes + failed(self._handler, self.entries, error)
            except TimeoutError as error:
                reason = f"after {self._handler.options.timeout} s"
                named = error if self._handler.options.timeout is None else TimeoutError(reason)
                return self._outcomes + failed(self._handler, self.entries, named)
            except BaseException as error:  # noqa: BLE001
                self._end_fork(error)
                return self._outcomes + failed(self._handler, self.entries, error)
        return self._done()

    async def _call(self) -> None:
        limit = self._handler.options.timeout
        if limit is None:  # most have none, and the block costs a tenth of an empty job
            await self._handler.function(*self._arguments())
            return
        async with asyncio.timeout(limit):
            await self._handler.function(*self._arguments())

    def _arguments(self) -> list[Any]:
        handler = self._handler
        given = [self._payload] if handler.takes_payload else []
        return [*given, self._message] if handler.takes_message else given

    def _end_fork(self, error: BaseException | None) -> None:
        """A handler that forks may return in both processes: only the first goes on."""
        if os.getpid() != self._pid:
            has_failed = error.code if isinstance(error, SystemExit) else error is not None
            os._exit(1 if has_failed else 0)

    def _done(self) -> list[Outcome]:
        """All entries are done. What was sent goes with the first of them."""
        self._end_fork(None)
        done = [Outcome(entry.id, entry.attempt, ACK) for entry in self.entries]
        if done:
            done[0].sent = self._message.sent
        return self._outcomes + done


def failed(
    handler: Handler[Any], entries: Sequence[Entry], error: BaseException, trace: str | None = None
) -> list[Outcome]:
    """The outcomes of an attempt that raised."""
    text = "".join(traceback.format_exception(error)) if trace is None else trace
    if isinstance(error, Dead):
        reason = text_of(getattr(error, "reason", error))
        return [Outcome(one.id, one.attempt, DEAD, reason=reason, trace=text) for one in entries]
    reason = f"{type(error).__name__}: {text_of(error)}"[:REASON_LINE_MAX]
    outcomes = []
    for one in entries:
        if one.attempt >= handler.options.attempts:
            outcome = Outcome(one.id, one.attempt, DEAD, reason=reason, trace=text)
        else:
            pause = handler.options.backoff_seconds(one.attempt)
            outcome = Outcome(one.id, one.attempt, RETRY, pause, one.attempt, reason)
        outcomes.append(outcome)
    return outcomes


def given_back(entries: Sequence[Entry]) -> list[Outcome]:
    """The outcomes of an attempt that a stop has cut off: it counts, and the next is due now."""
    return [
        Outcome(one.id, one.attempt, RETRY, 0, one.attempt, "the worker stopped") for one in entries
    ]


def not_begun(entries: Sequence[Entry], pause: float, reason: str) -> list[Outcome]:
    """The outcomes of an attempt that could not begin: it does not count. A suspect stays one."""
    outcomes = []
    for one in entries:
        before = max(0, one.attempt - 1)
        suspect = one.suspect
        outcomes.append(Outcome(one.id, one.attempt, RETRY, pause, before, reason, suspect=suspect))
    return outcomes
