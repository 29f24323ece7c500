"""The constants of RDB files: operations, value types, encodings. docs/formats/rdb.md shows the bytes.

    REDIS0010 | fa redis-ver 7.0.15 | fe 00 | fb 02 01 | fc <ms> 00 key value | 13 key stream | ff <crc64>
    magic       aux field             database  sizes     expiry, type, key, value    type ...    end

One byte is either the type of a value (a small number) or an operation (a large number).
"""

from __future__ import annotations

MAGIC = b"REDIS"
VALKEY_MAGIC = b"VALKEY"
MAGIC_BYTES_MAX = len(VALKEY_MAGIC)
HEADER_BYTES = 9
VERSION_MAX = 15
"""The newest version that can be read and written. It is that of Redis 8.10."""
VALKEY_VERSION = 80
"""The version of Valkey 9, which counts on its own from there. Its values are those of Redis 7.2."""
VALKEY_VERSION_IN_REDIS = 11
CHECKSUM_SINCE = 5
CHECKSUM_BYTES = 8

HASH_TEMPLATES = 242
KEY_METADATA = 243
SLOT_IMPORT = 243
"""In files of Valkey. The number has two meanings."""
SLOT_INFO = 244
FUNCTION = 245
FUNCTION_PRE_RELEASE = 246
MODULE_AUX = 247
IDLE = 248
FREQUENCY = 249
AUX = 250
RESIZE = 251
EXPIRY_MS = 252
EXPIRY_SECONDS = 253
SELECT = 254
END = 255
OPERATIONS_FROM = 240

STRING = 0
LIST = 1
LIST_ZIPLIST = 10
LIST_ZIPLISTS = 14
STREAM_1 = 15
LIST_NODES = 18
STREAM_2 = 19
STREAM_3 = 21
STREAM_4 = 26
STREAM_5 = 27

LIST_TYPES = frozenset({LIST, LIST_ZIPLIST, LIST_ZIPLISTS, LIST_NODES})
STREAM_TYPES = frozenset({STREAM_1, STREAM_2, STREAM_3, STREAM_4, STREAM_5})
HELD_TYPES = LIST_TYPES | STREAM_TYPES | {STRING}

NODE_PLAIN = 1
NODE_PACKED = 2

INT8 = 0
INT16 = 1
INT32 = 2
LZF = 3

FOREIGN_TYPES = {
    2: "a set",
    3: "a sorted set",
    4: "a hash",
    5: "a sorted set",
    6: "a module's value",
    7: "a module's value",
    9: "a hash (zipmap)",
    11: "a set (intset)",
    12: "a sorted set (ziplist)",
    13: "a hash (ziplist)",
    16: "a hash (listpack)",
    17: "a sorted set (listpack)",
    20: "a set (listpack)",
    22: "a hash with expiring fields",
    23: "a hash with expiring fields (listpack)",
    24: "a hash with expiring fields",
    25: "a hash with expiring fields (listpack)",
    28: "an array",
    29: "a hash with a template (listpack)",
    30: "a hash with a template (listpack)",
    31: "a hash with a template",
    32: "a hash with a template",
    33: "a rate limiter",
}
"""Value types that are not supported."""


def is_snapshot(head: bytes) -> bool:
    """Tell whether the first MAGIC_BYTES_MAX bytes of a file are those of a snapshot."""
    return head.startswith((MAGIC, VALKEY_MAGIC))


def redis_version(version: int) -> int:
    """The version of Redis with the same values: for Valkey's, that of Redis 7.2."""
    return VALKEY_VERSION_IN_REDIS if version == VALKEY_VERSION else version


def type_name(number: int) -> str:
    """The name of an unsupported type."""
    return FOREIGN_TYPES.get(number, "unknown")
