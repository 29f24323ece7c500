"""Types of the arguments and results of a Database, for type checkers.

A Database is generic in the type of its texts: `penstock.open()` returns a `Database[bytes]`,
`penstock.open(decode_responses=True)` a `Database[str]`. `Database` alone means `Database[bytes]`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NotRequired, Protocol, TypedDict

if TYPE_CHECKING:
    from typing import Generic

    from typing_extensions import TypeVar

    Text = TypeVar("Text", bound=bytes | str, default=bytes)

    class PerText(Generic[Text]):
        __slots__ = ()
else:
    from typing import TypeVar

    Text = TypeVar("Text", bound=bytes | str)

    class PerText:
        """The base of classes that are generic in Text. At run time X[bytes] is X.

        An extension class cannot inherit from typing.Generic.
        """

        __slots__ = ()

        def __class_getitem__(cls, _text):
            return cls


# --- Arguments -------------------------------------------------------------------------------------

Encodable = str | bytes | bytearray | memoryview | int | float
Key = Encodable
EntryId = Encodable
EntryIds = list[str] | list[bytes] | list[bytes | str] | tuple[EntryId, ...]
Seconds = int | datetime.timedelta
Moment = int | datetime.datetime
RefPolicy = Literal["KEEPREF", "DELREF", "ACKED"]
NackMode = Literal["SILENT", "FAIL", "FATAL"]


class Items(Protocol):
    """Describes a dict of any encodable types. The methods still require a dict, as redis-py's do."""

    def items(self) -> Iterable[tuple[Encodable, Encodable]]: ...


# The first half gives a dict literal its type, the second half accepts a variable such as dict[str, int].
Fields = dict[Encodable, Encodable] | Items
Streams = dict[Encodable, Encodable] | Items

# --- Results ---------------------------------------------------------------------------------------

Entry = tuple[Text, dict[Text, Text]]
# A list of two at run time, as in redis-py. Only a tuple type can describe two items of different types.
StreamEntries = tuple[Text, list[Entry[Text]]]
# Of a read that claims: idle time in milliseconds, and number of deliveries before.
ClaimedEntry = tuple[Text, dict[Text, Text], int, int]
ClaimedStreamEntries = tuple[Text, list[ClaimedEntry[Text]]]
# A list of three at run time: next id, entries, deleted ids.
AutoClaimed = tuple[Text, list[Entry[Text]], list[Text]]


class ConsumerCount(TypedDict):
    """A consumer and its number of pending entries."""

    name: bytes | str
    pending: int


class PendingSummary(TypedDict):
    """The result of xpending. `min` and `max` are None if nothing is pending."""

    pending: int
    min: bytes | str | None
    max: bytes | str | None
    consumers: list[ConsumerCount]


class PendingEntry(TypedDict):
    """A row of xpending_range. The time is in milliseconds.

    An entry that xnack has returned has the consumer b"" and the time -1.
    """

    message_id: bytes | str
    consumer: bytes | str
    time_since_delivered: int
    times_delivered: int


AnyEntry = tuple[bytes, dict[bytes, bytes]] | tuple[str, dict[str, str]]

StreamInfo = TypedDict(
    "StreamInfo",
    {
        "length": int,
        "radix-tree-keys": int,
        "radix-tree-nodes": int,
        "last-generated-id": bytes | str,
        "max-deleted-entry-id": bytes | str,
        "entries-added": int,
        "recorded-first-entry-id": bytes | str,
        "idmp-duration": NotRequired[int],
        "idmp-maxsize": NotRequired[int],
        "pids-tracked": NotRequired[int],
        "iids-tracked": NotRequired[int],
        "iids-added": NotRequired[int],
        "iids-duplicates": NotRequired[int],
        "groups": int,
        "first-entry": AnyEntry | None,
        "last-entry": AnyEntry | None,
    },
)

FullStreamInfo = TypedDict(
    "FullStreamInfo",
    {
        "length": int,
        "radix-tree-keys": int,
        "radix-tree-nodes": int,
        "last-generated-id": bytes | str,
        "max-deleted-entry-id": bytes | str,
        "entries-added": int,
        "recorded-first-entry-id": bytes | str,
        "idmp-duration": NotRequired[int],
        "idmp-maxsize": NotRequired[int],
        "pids-tracked": NotRequired[int],
        "iids-tracked": NotRequired[int],
        "iids-added": NotRequired[int],
        "iids-duplicates": NotRequired[int],
        "entries": dict[bytes, dict[bytes, bytes]] | dict[str, dict[str, str]],
        "groups": list[dict[str, object]],
    },
)

GroupInfo = TypedDict(
    "GroupInfo",
    {
        "name": bytes | str,
        "consumers": int,
        "pending": int,
        "last-delivered-id": bytes | str,
        "entries-read": int | None,
        "lag": int | None,
    },
)


class ConsumerInfo(TypedDict):
    """A row of xinfo_consumers. The times are in milliseconds. Redis 7.0 has no `inactive`."""

    name: bytes | str
    pending: int
    idle: int
    inactive: NotRequired[int]
