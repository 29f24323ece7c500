"""Traces: a span for each send and each attempt, connected through the fields of the entry."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from penstock.work import App, Message, tracing

Spans = dict[str, list[ReadableSpan]]


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "tracer_or_none", lambda: provider.get_tracer("tests"))
    return exporter


def spans(exported: InMemorySpanExporter) -> Spans:
    found: Spans = {}
    for span in exported.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    return found


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    context = span.context
    assert context is not None
    return int(context.span_id)


def test_an_attempt_is_a_child_of_its_send_through_every_step(
    exported: InMemorySpanExporter,
) -> None:
    app = App("memory:", group="g")
    done: list[str] = []

    @app.on("orders", attempts=2, backoff=(1, 1))
    def handle(order: dict[str, int], message: Message) -> None:
        if message.attempt == 1:
            raise ValueError("not yet")
        message.send("mails", f"order {order['n']}")

    @app.on("mails")
    async def send_mail(text: str) -> None:
        done.append(text)

    with app.test() as run:
        handle.send({"n": 1})
        run.run()
        run.advance(2)
        run.run()
    assert done == ["order 1"]
    found = spans(exported)
    [sent] = found["orders send"]
    first, second = found["orders process"]
    [passed_on], [mailed] = found["mails send"], found["mails process"]
    assert [parent_of(one) for one in (sent, first, second)] == [None, id_of(sent), id_of(sent)]
    assert parent_of(passed_on) == id_of(second)
    assert parent_of(mailed) == id_of(passed_on)
    assert (sent.kind, mailed.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert first.status.status_code is StatusCode.ERROR
    assert first.events[0].name == "exception"
    assert second.attributes is not None
    assert second.attributes["penstock.attempt"] == 2
    assert second.attributes["messaging.destination.name"] == "orders"


def test_a_batch_has_links_to_all_of_its_sends(exported: InMemorySpanExporter) -> None:
    app = App("memory:", group="g")

    @app.on("orders", batch=10)
    def handle(orders: list[int]) -> None:
        assert orders == [1, 2]

    with app.test() as run:
        for number in (1, 2):
            handle.send(number)
        run.run()
    found = spans(exported)
    [batch] = found["orders process"]
    assert parent_of(batch) is None
    assert [link.context.span_id for link in batch.links] == [
        id_of(one) for one in found["orders send"]
    ]


def test_fields_of_a_trace_are_no_payload_and_broken_ones_do_no_harm(
    exported: InMemorySpanExporter,
) -> None:
    app = App("memory:", group="g")
    got: list[dict[str, str]] = []

    @app.on("orders")
    def handle(order: dict[str, str]) -> None:
        got.append(order)

    with app.test() as run:
        app.backend.ask("XADD", "orders", "*", "sku", "A1", "traceparent", b"\xff nonsense")
        run.run()
    assert got == [{"sku": "A1"}]
    [attempt] = spans(exported)["orders process"]
    assert parent_of(attempt) is None


def test_without_a_provider_nothing_is_added() -> None:
    app = App("memory:", group="g")

    @app.on("orders")
    def handle(order: int) -> None:
        assert not trace.get_current_span().get_span_context().is_valid

    with app.test() as run:
        handle.send(1)
        [fields] = [fields for _, fields in app.backend.ask("XRANGE", "orders", "-", "+")]
        assert run.run() == 1
    assert fields[::2] == [b"data"]
