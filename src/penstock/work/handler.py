"""A function with its stream and its options: what `@app.on` returns."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.errors import ConfigError
from penstock.work import tracing
from penstock.work.message import Message, Sent
from penstock.work.names import partition
from penstock.work.options import Options
from penstock.work.payload import PayloadType, encode, key_of

if TYPE_CHECKING:
    from penstock.work.app import App

F = TypeVar("F", bound=Callable[..., Any])


class Handler(Generic[F]):
    """A function that runs for every entry of a stream. It can still be called as a function."""

    def __init__(self, app: App, function: F, stream: str, options: Options, names: dict[str, Any]):
        """`names`: local names that the function's annotations may use. Raises: ConfigError."""
        self._app = app
        self.function = function
        self.stream = stream
        self.options = options
        self.is_async = inspect.iscoroutinefunction(function)
        options.check(self.is_async)
        self.name = function.__qualname__
        self.module = function.__module__
        if options.processes and "<" in self.name:
            raise ConfigError(
                f"{self.name}: processes=True needs a function that a child can import by its name"
            )
        parameters = _parameters(function, names)
        self.takes_payload = bool(parameters) and parameters[0] is not Message
        self.takes_message = Message in parameters
        kind = parameters[0] if self.takes_payload else Any
        if options.batch is not None:
            kind = _item_of(kind, self.name)
        try:
            self.payload = PayloadType(kind)
        except TypeError as error:
            raise ConfigError(
                f"{self.name}: the payload's type is not supported: {error}"
            ) from None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def send(self, payload: Any, *, delay: float = 0, dedup: str | None = None) -> str | None:
        """Add an entry to the stream; return its id, or None if its dedup name was used before.

        delay: seconds until workers can take it; it gets another id then. dedup: a name that is used at most
        once until 24 hours after the entry is due. Raises: BadPayload, TypeError, ValueError, CommandError,
        ConnectionLost (the entry may have been added).
        """
        with tracing.sending(self.stream) as trace:
            return self._app.send_now(self.sending(payload, delay, dedup, trace))

    async def asend(
        self, payload: Any, *, delay: float = 0, dedup: str | None = None
    ) -> str | None:
        """As send, without blocking the event loop."""
        with tracing.sending(self.stream) as trace:
            sent = self.sending(payload, delay, dedup, trace)
            return await asyncio.to_thread(self._app.send_now, sent)

    def sending(
        self, payload: Any, delay: float, dedup: str | None, trace: Sequence[bytes]
    ) -> Sent:
        """What `send` adds. Raises: BadPayload, TypeError, ValueError."""
        return Sent(self.stream_for(payload), [*encode(payload), *trace], delay, dedup)

    def stream_for(self, payload: Any) -> str:
        """The stream of a payload: one of the partitions, by its key. Raises: BadPayload."""
        if self.options.key is None:
            return self.stream
        key = key_of(payload, self.options.key)
        if self.options.partitions is None:
            return self.stream
        return partition(self.stream, key, self.options.partitions)

    def route(self, stream: str, payload: Any) -> str:
        """The stream, or the partition, for what the handler sends."""
        return self._app.route(stream, payload)

    def streams(self) -> list[str]:
        """The stream, or its partitions."""
        if self.options.partitions is None:
            return [self.stream]
        return [f"{self.stream}:{number}" for number in range(self.options.partitions)]


def _parameters(function: Callable[..., Any], names: dict[str, Any]) -> list[Any]:
    """The annotations of a function's parameters, Any where there is none."""
    found = inspect.signature(function).parameters.values()
    if len(found) > 2:
        raise ConfigError(f"{function.__qualname__} takes more than a payload and a Message")
    scope = {**getattr(function, "__globals__", {}), **names}
    kinds = []
    for parameter in found:
        kind = parameter.annotation
        if isinstance(kind, str):
            try:
                kind = eval(kind, scope)
            except NameError as error:
                raise ConfigError(f"{function.__qualname__}: {error} in its annotations") from None
        kinds.append(Any if kind is inspect.Parameter.empty else kind)
    return kinds


def _item_of(kind: Any, name: str) -> Any:
    """The type of the items of a list type."""
    if kind in (Any, list):
        return Any
    items: tuple[Any, ...] = getattr(kind, "__args__", ())
    if getattr(kind, "__origin__", None) is not list or len(items) != 1:
        raise ConfigError(f"{name}: with batch= the payload is a list, such as list[Order]")
    return items[0]
