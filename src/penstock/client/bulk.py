"""Reads a stream in bulk: from a socket into Arrow batches, without a Python object per row.

    with BulkReader(client, schema) as reader:
        for batch in reader.batches(b"orders", "-", "+"):
            ...

A redis-py client handles the connection, login and TLS. The reader takes one of its connections and reads
from the socket directly. A penstock server sends raw nodes (PENSTOCK NODES), any other server sends entries
(XRANGE).

The reader requests the next page before it returns the current one: for nodes as soon as the head of a reply
has the next cursor, for entries when the last entry of a page has been read. So the server fills the socket
while the caller works on a batch.

Entries added after the end of the range do not appear. Errors name the server and the stream, but never a
password. After a lost connection a reader cannot be used again. A caller that retries, as Spark does for each
task, starts at the beginning of the range and gets the same entries.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pyarrow as pa
import redis

from penstock.client.arrow_batch import BatchBuilder
from penstock.client.inbox import Inbox
from penstock.client.node_rows import NodeRows
from penstock.client.reply_rows import DONE, FULL, NodesReply, RangeReply
from penstock.client.rows import RowLimits
from penstock.core import stream_id
from penstock.errors import CommandError, ConnectionLost, CorruptData, ProtocolError, shown

FETCH_SIZE = 10_000
ENTRIES_A_NODE = 100  # default of stream-node-max-entries; sizes the pages of nodes
IDS_A_REQUEST = 1_000


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """Sizes of requests and batches. `native`: the server is penstock; None asks the server."""

    fetch_size: int = FETCH_SIZE
    native: bool | None = None
    limits: RowLimits = field(default_factory=RowLimits)


def is_native(client: redis.Redis) -> bool:
    """Whether a server has the PENSTOCK commands, and this user may use them. Raises: redis.RedisError."""
    try:
        client.execute_command("PENSTOCK", "HELP")  # type: ignore[no-untyped-call]
    except redis.exceptions.NoPermissionError:
        return False
    except redis.ResponseError as error:
        # Any other error says nothing: a server that fails now may be penstock.
        if "unknown command" in str(error).lower():
            return False
        raise
    return True


class BulkReader:
    """Reads ranges of streams over one connection.

    Methods: batches, batches_of. Counters: rows, values_failed.
    """

    def __init__(
        self, client: redis.Redis, schema: pa.Schema, options: BulkOptions | None = None
    ) -> None:
        self._client = client
        self._schema = schema
        self._options = BulkOptions() if options is None else options
        self._native = self._options.native
        self._connection: Any = None  # redis-py's; its class depends on the URL
        self._inbox = Inbox()
        self.rows = 0
        self.values_failed = 0

    def __enter__(self) -> BulkReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Return the connection to the client's pool."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._client.connection_pool.release(connection)

    def batches(self, stream: bytes, start: str, end: str) -> Iterator[pa.RecordBatch]:
        """The entries of a range, with bounds as in XRANGE.

        Raises: ConnectionLost, CommandError, CorruptData, UnreadableValue, ConfigError.
        """
        with self._reading(stream):
            if self._native is None:
                self._native = is_native(self._client)
            read = self._nodes if self._native else self._ranges
            builder = BatchBuilder(self._schema, stream, self._options.limits)
            for _ in read(builder, stream, start.encode(), end.encode()):
                yield self._taken(builder)
            if builder.rows.count:
                yield self._taken(builder)

    def batches_of(self, stream: bytes, ids: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        """The entries with these ids, in the given order. Deleted entries are left out."""
        with self._reading(stream):
            builder = BatchBuilder(self._schema, stream, self._options.limits)
            for _ in self._singles(builder, stream, ids):
                yield self._taken(builder)
            if builder.rows.count:
                yield self._taken(builder)

    def _taken(self, builder: BatchBuilder) -> pa.RecordBatch:
        batch = builder.take()
        self.rows += batch.num_rows
        self.values_failed += builder.rows.values_failed
        builder.rows.values_failed = 0
        return batch

    # --- Pages: each of these yields when a batch is full -------------------------------------------------

    def _nodes(
        self, builder: BatchBuilder, stream: bytes, start: bytes, end: bytes
    ) -> Iterator[None]:
        first, last = stream_id.parse_range_start(start), stream_id.parse_range_end(end)
        count = b"%d" % max(1, self._options.fetch_size // ENTRIES_A_NODE)
        reply = NodesReply(self._inbox, NodeRows(builder.rows, first, last))
        self._send([(b"PENSTOCK", b"NODES", stream, start, end, b"COUNT", count)])
        asked = True
        while asked:
            asked = False
            reply.expect()
            while (state := reply.run()) != DONE:
                if not asked and reply.cursor_is_known and reply.cursor is not None:
                    asked = True
                    words = (b"PENSTOCK", b"NODES", stream, reply.cursor, end, b"COUNT", count)
                    self._send([words])
                if state == FULL:
                    yield
                else:
                    self._receive()
            if not asked and reply.cursor is not None:
                asked = True
                words = (b"PENSTOCK", b"NODES", stream, reply.cursor, end, b"COUNT", count)
                self._send([words])

    def _ranges(
        self, builder: BatchBuilder, stream: bytes, start: bytes, end: bytes
    ) -> Iterator[None]:
        count = b"%d" % self._options.fetch_size
        reply = RangeReply(self._inbox, builder.rows)
        while True:
            self._send([(b"XRANGE", stream, start, end, b"COUNT", count)])
            reply.expect()
            yield from self._read(reply)
            if reply.count < self._options.fetch_size or reply.last_id == stream_id.LARGEST:
                return
            start = reply.last_id.next().text  # Redis before 6.2 has no `(`

    def _singles(
        self, builder: BatchBuilder, stream: bytes, ids: Sequence[bytes]
    ) -> Iterator[None]:
        reply = RangeReply(self._inbox, builder.rows)
        for at in range(0, len(ids), IDS_A_REQUEST):
            page = ids[at : at + IDS_A_REQUEST]
            self._send([(b"XRANGE", stream, one, one) for one in page])
            for _ in page:
                reply.expect()
                yield from self._read(reply)

    def _read(self, reply: RangeReply) -> Iterator[None]:
        while (state := reply.run()) != DONE:
            if state == FULL:
                yield
            else:
                self._receive()

    # --- The connection -----------------------------------------------------------------------------------

    def _socket(self) -> socket.socket:
        if self._connection is None:
            self._connection = self._client.connection_pool.get_connection()
        sock: socket.socket = self._connection._sock
        return sock

    def _send(self, commands: Iterable[Sequence[bytes]]) -> None:
        parts: list[bytes] = []
        for words in commands:
            parts.append(b"*%d\r\n" % len(words))
            parts.extend(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self._socket().sendall(b"".join(parts))

    def _receive(self) -> None:
        while True:
            with self._inbox.free() as view:
                count = self._socket().recv_into(view)
            if count == 0:
                raise ConnectionResetError("the server closed the connection")
            if self._inbox.received(count):
                return

    @contextmanager
    def _reading(self, stream: bytes) -> Iterator[None]:
        """Add the stream and server to every error. Drop the connection if a reply was not read fully."""
        finished = False
        place = f"stream {shown(stream)!r} of {self._where()}"
        try:
            yield
            finished = True
        except CommandError as error:
            text = str(error).removeprefix(f"{error.code} ")
            raise CommandError(f"{text} ({place})", error.code) from error
        except (ProtocolError, CorruptData) as error:
            raise CorruptData(f"{place}: {error}", getattr(error, "offset", 0)) from error
        except (OSError, redis.ConnectionError, redis.TimeoutError) as error:
            raise ConnectionLost(f"{place}: the connection was lost: {error}") from error
        finally:
            if not finished and self._connection is not None:
                self._connection.disconnect()
                self._inbox = Inbox()

    def _where(self) -> str:
        """The address of the server, without a password."""
        known = self._client.connection_pool.connection_kwargs
        path = known.get("path")
        if path:
            return f"unix://{path}"
        return f"{known.get('host', '127.0.0.1')}:{known.get('port', 6379)}"
