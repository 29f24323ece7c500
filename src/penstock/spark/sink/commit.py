"""The last step of a batch: what is staged goes to its streams, to each at once and once.

    1  the records of all streams: one that is ahead of the batch refuses it, before anything is appended
    2  for each stream: is its staging as long as the tasks have left it? Then append, and note the batch

Our own server appends by PENSTOCK APPENDBATCH; any other by the script below, which does the same: it looks
at all keys, and into them, before it changes one, and notes the batch beside the entries. A batch is noted
for each stream on its own. When a driver dies between two of them the batch runs again, and only what is
missing is appended.

Spark runs no batch again but its last, so an honest repeat finds its own number. A larger one was noted by
a checkpoint that is not this one any more.
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
-- What a script has done stays when a later call is refused: a user may lack a permission. So every call is
-- made in vain first. SET is the first of them, for memory is checked before the first write only.
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
    """Append to each stream what is staged for it, in this order, unless it was before. Raises: SinkError."""
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
                # By whom? The record may have moved since: then two drivers have this query.
                _is_done(servers, stream, write)


@contextmanager
def _naming(stream: bytes, write: Write) -> Iterator[None]:
    """Every refusal says what it is about."""
    try:
        yield
    except (redis.ResponseError, SinkError) as error:
        raise SinkError(f"batch {write.batch} for stream {shown(stream)}: {error}") from error


def _is_done(servers: Servers, stream: bytes, write: Write) -> bool:
    """Whether the stream has this batch, by its record. Raises: SinkError if the record is ahead."""
    record = servers.ask(StreamName(stream), "GET", write.record_key(stream))
    try:
        last = -1 if record is None else int(record)
    except ValueError:
        raise SinkError("the record holds no number") from None
    if last > write.batch:
        raise SinkError(
            f"the stream holds batches up to {last} of this query: its checkpoint is older than the stream,"
            " and the same numbers may mean other entries now. Restore the newer checkpoint, or begin"
            " with a new one"
        )
    return last == write.batch


def _check_whole(servers: Servers, stream: bytes, keys: Sequence[StagingKey]) -> None:
    """Whether all is there that tasks have staged. Raises: SinkError."""
    lengths = servers.ask_all(StreamName(stream), [("LLEN", key.name) for key in keys])
    for key, length in zip(keys, lengths, strict=True):
        if length != key.blobs:
            raise SinkError(
                f"staging key {shown(key.name)} has {length} blobs, and {key.blobs} were staged: it has"
                " expired, or the server has lost writes that it had acknowledged. Run the batch again"
            )


def _append(
    servers: Servers, stream: bytes, staging: Sequence[bytes], write: Write, trim: Sequence[str]
) -> int:
    """Let the server append, in this order; how many entries, 0 if they were there before."""
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
