"""Traces of sends and attempts, if OpenTelemetry is installed (`pip install opentelemetry-api` and an SDK).

    send       a span "STREAM send"; its context is in the fields traceparent and tracestate of the entry
    attempt    a span "STREAM process", a child of the one that sent the entry; a batch has links to all

Without OpenTelemetry, or without an SDK that is set up, nothing is added to entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.work.feed import Entry

try:
    from opentelemetry import propagate, trace
except ImportError:
    _IS_INSTALLED = False
else:
    _IS_INSTALLED = True

FIELDS = (b"traceparent", b"tracestate")
_NOTHING = nullcontext()
_SYSTEM = {"messaging.system": "penstock"}


def tracer_or_none() -> Any:
    """The tracer of the program, or None if it has set up none."""
    if not _IS_INSTALLED or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace.get_tracer("penstock.work")


@contextmanager
def sending(stream: str) -> Iterator[list[bytes]]:
    """A span around a send; gives the fields to add to the entry."""
    tracer = tracer_or_none()
    if tracer is None:
        yield []
        return
    attributes = {**_SYSTEM, "messaging.destination.name": stream}
    with tracer.start_as_current_span(
        f"{stream} send", kind=trace.SpanKind.PRODUCER, attributes=attributes
    ):
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        wanted = [name for name in FIELDS if name.decode() in carrier]
        yield [part for name in wanted for part in (name, carrier[name.decode()].encode())]


def attempting(stream: str, entries: Sequence[Entry]) -> AbstractContextManager[None]:
    """A span around an attempt. An exception is recorded in it."""
    tracer = tracer_or_none()
    return _NOTHING if tracer is None else _span_of_attempt(tracer, stream, entries)


@contextmanager
def _span_of_attempt(tracer: Any, stream: str, entries: Sequence[Entry]) -> Iterator[None]:
    attributes = {
        **_SYSTEM,
        "messaging.destination.name": stream,
        "messaging.message.id": entries[0].id,
        "messaging.batch.message_count": len(entries),
        "penstock.attempt": entries[0].attempt,
    }
    parents = [_context_of(entry.fields) for entry in entries]
    links = [trace.Link(trace.get_current_span(one).get_span_context()) for one in parents]
    with tracer.start_as_current_span(
        f"{stream} process",
        context=parents[0] if len(parents) == 1 else None,
        kind=trace.SpanKind.CONSUMER,
        attributes=attributes,
        links=links if len(links) > 1 else None,
    ):
        yield


def _context_of(fields: Sequence[bytes]) -> Any:
    """The context that came with an entry; an empty one if there is none, or a broken one."""
    carrier = {
        name.decode(): value.decode("ascii", "replace")
        for name, value in zip(fields[::2], fields[1::2], strict=True)
        if name in FIELDS
    }
    return propagate.extract(carrier)
