"""Commits a batch: appends the staged rows to each stream, atomically and exactly once.

    1  read the records of all streams; fail if one is ahead of the batch, before anything is appended
    2  for each stream: check that its staging keys are complete, append them, and record the batch

penstock's server appends with PENSTOCK APPENDBATCH, any other server with the script below. Both check all
keys and their contents before the first change, and record the batch together with the entries. Each stream
has its own record. If the driver dies between two streams, Spark repeats the batch, and only the missing
streams are appended.

Spark repeats only its last batch, so a valid repeat finds its own number in the record. A larger number means
that the checkpoint is older than the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha1

import redis
from redis.exceptions import NoScriptError

from penstock.spark.connection import Servers, StreamName, Word
from penstock.spark.sink.staging import SinkError, StagingKey, Write, shown

# KEYS: record, stream, staging ...   ARGV: the batch, then the options of XTRIM
SCRIPT = b"""
local record, stream = KEYS[1], KEYS[2]
local last = redis.call('GET', record)
if last and not tonumber(last) then
  return redis.error_reply('ERR the record holds no number')
end
if last and tonumber(last) >= tonumber(ARGV[1]) then
  for at = 3, #KEYS do redis.call('DEL', KEYS[at]) end
  return 0
end
local kind = redis.call('TYPE', stream)['ok']
if kind ~= 'none' and kind ~= 'stream' then
  return redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
end
if kind == 'stream' then
  local facts = redis.call('XINFO', 'STREAM', stream)
  for at = 1, #facts, 2 do
    if facts[at] == 'last-generated-id' and string.find(facts[at + 1], '^18446744073709551615%-') then
      return redis.error_reply('ERR the stream has no more ids for a batch')
    end
  end
end
for at = 3, #KEYS do
  local blobs = redis.call('LLEN', KEYS[at])
  if blobs == 0 then
    return redis.error_reply('ERR no such staging key: ' .. KEYS[at]
      .. '; it has expired, or the batch was given up')
  end
  for place = 0, blobs - 1 do cmsgpack.unpack(redis.call('LINDEX', KEYS[at], place)) end
end
-- A script is not rolled back if a later call is refused, for example by an ACL. So each call is tried first
-- in a form without effect. SET comes first because memory is checked only before the first write.
redis.call('SET', record, ARGV[1], last and 'NX' or 'XX')
if #ARGV > 1 then redis.call('XTRIM', stream, 'MAXLEN', '9223372036854775807') end
if redis.acl_check_cmd and not redis.acl_check_cmd('DEL', KEYS[3]) then
  return redis.error_reply("NOPERM this user has no permissions to run the 'del' command")
end
local added = 0
for at = 3, #KEYS do
  for place = 0, redis.call('LLEN', KEYS[at]) - 1 do
    local rows = cmsgpack.unpack(redis.call('LINDEX', KEYS[at], place))
    for number = 1, #rows do
      redis.call('XADD', stream, '*', unpack(rows[number]))
    end
    added = added + #rows
  end
end
if #ARGV > 1 then redis.call('XTRIM', stream, unpack(ARGV, 2)) end
redis.call('SET', record, ARGV[1])
for at = 3, #KEYS do redis.call('DEL', KEYS[at]) end
return added
"""
SCRIPT_SHA = sha1(SCRIPT, usedforsecurity=False).hexdigest()


def append_batch(
    servers: Servers,
    staged: Mapping[bytes, Sequence[StagingKey]],
    write: Write,
    trim: Sequence[str],
) -> None:
    """Append the staged rows to each stream, in this order, unless it has the batch. Raises: SinkError."""
    done = set()
    for stream in staged:
        with _naming(stream, write):
            if _is_done(servers, stream, write):
                done.add(stream)
    for stream, keys in sorted(staged.items()):
        with _naming(stream, write):
            if stream not in done:
                _check_whole(servers, stream, keys)
            if not _append(servers, stream, [key.name for key in keys], write, trim):
                # The record has changed since the first check: fails if another driver runs the query.
                _is_done(servers, stream, write)


@contextmanager
def _naming(stream: bytes, write: Write) -> Iterator[None]:
    """Add the batch and the stream to each error."""
    try:
        yield
    except (redis.ResponseError, SinkError) as error:
        raise SinkError(f"batch {write.batch} for stream {shown(stream)}: {error}") from error


def _is_done(servers: Servers, stream: bytes, write: Write) -> bool:
    """Whether the stream's record has this batch. Raises: SinkError if the record is ahead."""
    record = servers.ask(StreamName(stream), "GET", write.record_key(stream))
    try:
        last = -1 if record is None else int(record)
    except ValueError:
        raise SinkError("the record holds no number") from None
    if last > write.batch:
        raise SinkError(
            f"the stream has batches up to {last} of this query: its checkpoint is older than the stream,"
            " and the same batch numbers may have other entries. Restore the newer checkpoint, or use a"
            " new one"
        )
    return last == write.batch


def _check_whole(servers: Servers, stream: bytes, keys: Sequence[StagingKey]) -> None:
    """Check that nothing of what the tasks have staged is missing. Raises: SinkError."""
    lengths = servers.ask_all(StreamName(stream), [("LLEN", key.name) for key in keys])
    for key, length in zip(keys, lengths, strict=True):
        if length != key.blobs:
            raise SinkError(
                f"staging key {shown(key.name)} has {length} blobs, but {key.blobs} were staged: it has"
                " expired, or the server has lost acknowledged writes. Run the batch again"
            )


def _append(
    servers: Servers, stream: bytes, staging: Sequence[bytes], write: Write, trim: Sequence[str]
) -> int:
    """Append on the server, in this order. Returns the number of entries, 0 if the stream had the batch."""
    name = StreamName(stream)
    keys = (write.record_key(stream), stream, *staging)
    if servers.is_native(name):
        own: list[Word] = [write.batch, len(keys), *keys, *trim]
        return int(servers.ask(name, "PENSTOCK", "APPENDBATCH", *own))
    arguments: list[Word] = [len(keys), *keys, write.batch, *trim]
    try:
        return int(servers.ask(name, "EVALSHA", SCRIPT_SHA, *arguments))
    except NoScriptError:
        return int(servers.ask(name, "EVAL", SCRIPT, *arguments))
