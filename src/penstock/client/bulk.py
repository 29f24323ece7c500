"""Reading a stream in bulk: from a socket to Arrow batches, without an object for each row.

    with BulkReader(client, schema) as reader:
        for batch in reader.batches(b"orders", "-", "+"):
            ...

The client is redis-py's: it has connected, logged in and spoken TLS. The reader takes one of its
connections and reads from that socket itself. Our own server sends raw nodes (PENSTOCK NODES), any other
the entries (XRANGE).

The next page is asked for before this one is handed on: of nodes as soon as a reply's head says where it
goes on, of entries when the last of a page has been read. While the caller works on a batch, the server
fills the socket.

A range is read as it is at the time; entries that are added behind its end never show. An error names the
server and the stream, never a password. A reader whose connection was lost is of no use any more: whoever
retries (Spark does, by task) starts again from the beginning of the range, and gets the same entries.
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
ENTRIES_A_NODE = 100  # stream-node-max-entries, by default: pages of nodes are sized by it
IDS_A_REQUEST = 1_000


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """How much to ask for at once, and of whom. `native`: the server is ours; None is found out by asking."""

    fetch_size: int = FETCH_SIZE
    native: bool | None = None
    limits: RowLimits = field(default_factory=RowLimits)


def is_native(client: redis.Redis) -> bool:
    """Tell whether a server knows the commands PENSTOCK ..."""
    try:
        client.execute_command("PENSTOCK", "HELP")  # type: ignore[no-untyped-call]
    except redis.ResponseError:
        return False
    return True


class BulkReader:
    """Reads ranges of streams over one connection. Read: batches, batches_of. Look: values_failed, rows."""

    def __init__(
        self, client: redis.Redis, schema: pa.Schema, options: BulkOptions | None = None
    ) -> None:
        self._client = client
        self._schema = schema
        self._options = BulkOptions() if options is None else options
        self._native = self._options.native
        self._connection: Any = None  # redis-py's, whose kind depends on how it connects
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
        """Give the connection back, or up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._client.connection_pool.release(connection)

    def batches(self, stream: bytes, start: str, end: str) -> Iterator[pa.RecordBatch]:
        """The entries of a range, given as to XRANGE.

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
        """The entries with these ids that are still there, in the order given."""
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

    # --- Pages: each of these stops wherever a batch is full ----------------------------------------------

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
            start = reply.last_id.next().text  # a Redis before 6.2 knows no `(`

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
                raise ConnectionResetError("the server has closed the connection")
            if self._inbox.received(count):
                return

    @contextmanager
    def _reading(self, stream: bytes) -> Iterator[None]:
        """Say in every error whose it is; leave no connection behind with an answer half read."""
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
            raise ConnectionLost(f"{place}: the connection is lost: {error}") from error
        finally:
            if not finished and self._connection is not None:
                self._connection.disconnect()
                self._inbox = Inbox()

    def _where(self) -> str:
        """The server, by what is no secret."""
        known = self._client.connection_pool.connection_kwargs
        path = known.get("path")
        if path:
            return f"unix://{path}"
        return f"{known.get('host', '127.0.0.1')}:{known.get('port', 6379)}"
