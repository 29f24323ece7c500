"""Measures rows per second of the decoders to Arrow batches: from raw nodes and from replies to XRANGE.

    python benchmarks/_columns.py [rows]

One process without a server or a socket: the CPU time of the decoders alone.
"""

from __future__ import annotations

import sys
import time

import pyarrow as pa

from penstock.client.arrow_batch import BatchBuilder
from penstock.client.inbox import Inbox
from penstock.client.node_rows import NodeRows
from penstock.client.reply_rows import DONE, FULL, RangeReply
from penstock.core import listpack, stream_id
from penstock.core.frame import Frame
from penstock.core.stream import Stream

TYPES = {
    "_stream": pa.string(),
    "_id": pa.string(),
    "_timestamp": pa.timestamp("us", tz="UTC"),
    "sku": pa.string(),
    "qty": pa.int32(),
    "price": pa.float64(),
    "customer": pa.int64(),
    "ok": pa.bool_(),
    "fields": pa.map_(pa.string(), pa.string()),
}
SCHEMAS = (
    "sku qty price customer ok",
    "_id _timestamp sku qty price customer ok",
    "_stream _id fields",
)


def made(rows: int) -> tuple[Stream, bytes]:
    """Orders with five fields, as a stream and as the bytes of a reply."""
    stream = Stream()
    reply = bytearray(b"*%d\r\n" % rows)
    for n in range(rows):
        price = b"%d.%02d" % (n % 300, n % 100)
        words: tuple[bytes, ...] = (
            b"sku",
            b"A%d" % (n % 1000),
            b"qty",
            b"%d" % (n % 50),
            b"price",
            price,
        )
        words += (b"customer", b"%d" % (10**6 + n), b"ok", b"true" if n % 2 else b"false")
        frame = Frame()
        for word in words:
            frame.add(word)
        ms, seq = 1_700_000_000_000 + n // 3, n % 3
        stream.append_at(ms, seq, frame, 0)
        text = b"%d-%d" % (ms, seq)
        reply += b"*2\r\n$%d\r\n%b\r\n*10\r\n" % (len(text), text)
        for word in words:
            reply += b"$%d\r\n%b\r\n" % (len(word), word)
    return stream, bytes(reply)


def by_nodes(stream: Stream, schema: pa.Schema) -> int:
    builder = BatchBuilder(schema, b"orders")
    nodes = NodeRows(builder.rows)
    count = 0
    walk = stream.nodes.iterator()
    walk.seek("^")
    while walk.next():
        node: bytearray = walk.value
        nodes.open(node, 0, listpack.total_bytes(node), stream_id.from_key(walk.key))
        while not nodes.run():
            count += builder.take().num_rows
    return count + int(builder.take().num_rows)


def by_reply(data: bytes, schema: pa.Schema) -> int:
    builder = BatchBuilder(schema, b"orders")
    inbox = Inbox()
    reply = RangeReply(inbox, builder.rows)
    count = at = 0
    while (state := reply.run()) != DONE:
        if state == FULL:
            count += builder.take().num_rows
            continue
        with inbox.free() as view:
            size = min(len(view), len(data) - at)
            view[:size] = data[at : at + size]
        inbox.received(size)
        at += size
    return count + int(builder.take().num_rows)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    stream, data = made(rows)
    for names in SCHEMAS:
        schema = pa.schema({name: TYPES[name] for name in names.split()})
        start = time.process_time()
        assert by_nodes(stream, schema) == rows
        between = time.process_time()
        assert by_reply(data, schema) == rows
        end = time.process_time()
        speeds = [rows / (between - start) / 1e6, rows / (end - between) / 1e6]
        print(f"{names:42} nodes {speeds[0]:.2f}M rows/s   RESP {speeds[1]:.2f}M rows/s")


if __name__ == "__main__":
    main()
