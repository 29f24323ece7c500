"""What redis-py lacks: reading streams in bulk into Arrow columns, and typed replies.

address          server URLs
bulk             reads a stream from a socket into Arrow batches
inbox            the receive buffer
reply_rows       rows from replies to XRANGE and XREADGROUP
node_rows        rows from replies to PENSTOCK NODES
row_blobs        rows to the blobs of an exactly-once sink
rows             the fields of an entry, sorted into columns
columns          builders of Arrow columns
value_text       text to typed values
arrow_batch      Arrow schema and record batches
raw_fields       all fields as a map, and unchanged where it cannot hold them
replies          values from replies in RESP2
dead_letters     the commands that redrive dead letters
retention        what a retention rule would remove
xinfo            replies of XINFO as dataclasses
bounded_replies  parsers for redis-py that limit the size of replies
"""
