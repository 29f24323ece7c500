"""The payload of DUMP and RESTORE: one value in RDB form, a version and a checksum.

    SET n 17          00 | c0 11 | 0a 00 | e4 03 29 45 3c f4 2b 1c
                      type value   version  checksum of all before it

A payload comes from a client, so it is not trusted. The checksum only shows that it was not damaged on the
way. The value is validated (`deep`), must end exactly before the version, and may not be empty. Redis accepts
values that end earlier or run into the version; we refuse both.

Payloads of Valkey 9 have a version of their own (80). They are accepted at every level: strings, lists and
streams are those of Redis 7.2.
"""

from __future__ import annotations

from penstock.errors import CommandError, CorruptData
from penstock.persist.rdb import crc64
from penstock.persist.rdb import format as rdb_format
from penstock.persist.rdb import value as rdb_value
from penstock.persist.rdb import writer as rdb_writer
from penstock.persist.rdb.input import RdbInput
from penstock.persist.rdb.output import RdbOutput
from penstock.persist.rdb.value import Value, ValueLimits

_VERSION_BYTES = 2
_CHECKSUM_BYTES = 8
SEAL_BYTES = _VERSION_BYTES + _CHECKSUM_BYTES


def dump_value(value: Value, version: int, compress: bool = True) -> bytes:
    """Encode a value for RESTORE, here or in a Redis that reads this RDB version."""
    chunks: list[bytes] = []
    output = RdbOutput(chunks.append, compress, checksum=True)
    output.byte(rdb_writer.type_of(value, version))
    rdb_writer.write_value(output, value, version)
    output.raw(version.to_bytes(_VERSION_BYTES, "little"))
    chunks.append(output.crc_now().to_bytes(_CHECKSUM_BYTES, "little"))
    return b"".join(chunks)


def restore_value(payload: bytes, version_max: int, limits: ValueLimits) -> Value:
    """Decode a payload. Raises: CommandError with Redis's text."""
    if not is_sealed(payload, version_max):
        raise CommandError("DUMP payload version or checksum are wrong")
    source = RdbInput(None, payload=payload[: len(payload) - SEAL_BYTES])
    try:
        value = rdb_value.read_value(source, source.byte(), limits, deep=True)
    except CorruptData as error:
        raise CommandError("Bad data format") from error
    if rdb_value.is_empty_list(value) or source.at != source.end:
        raise CommandError("Bad data format")
    return value


def is_sealed(payload: bytes, version_max: int) -> bool:
    """Tell whether a payload has a supported version and a valid checksum."""
    end = len(payload) - _CHECKSUM_BYTES
    if end < _VERSION_BYTES:
        return False
    if _version(payload) > version_max and not is_of_valkey(payload):
        return False
    stated = int.from_bytes(payload[end:], "little")
    return crc64.update(0, bytearray(payload), 0, end) == stated


def is_of_valkey(payload: bytes) -> bool:
    """Tell whether a payload has Valkey's version, which no Redis accepts."""
    return _version(payload) == rdb_format.VALKEY_VERSION


def _version(payload: bytes) -> int:
    return int.from_bytes(payload[-SEAL_BYTES:-_CHECKSUM_BYTES], "little")
