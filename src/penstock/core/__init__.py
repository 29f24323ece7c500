"""Data structures: ids, listpacks, rax, streams, groups, lists. No clock, no I/O, no protocol.

stream_id      ids of 128 bits, `ms-seq`
listpack       the packed list of Redis: elements in one bytearray
stream_node    one node of a stream: entries packed into a listpack
stream         a stream: nodes in a rax; appending, when a node is full, trimming
stream_cursor  reads entries in order: ranges, and the cursor that walks them
stream_parts   splits a range of a stream into equal parts
groups/        consumer groups: consumers, pending entries, claiming, references
idempotency    the messages that each producer has added lately
list_value     the value of a list key: a chain of listpacks
rax/           the radix tree: a sorted map from byte strings to objects
garbage        data that is no longer used, freed a part at a time
frame          the arguments of one command: a buffer and the span of each
row_blob       rows of an exactly-once sink, packed as MessagePack
memory         bounds-checked reads and writes inside a bytearray
spans          reads the pieces of a frame, and appends them to a node, in one pass
glob           glob patterns, as in KEYS and PSUBSCRIBE
long_double    sums of decimal numbers with the precision of Redis on x86
check          verifies the invariants of a structure
"""
