"""The work commands as scripts, for Redis 6.2 and newer and for Valkey.

Each script takes the keys and arguments of the PENSTOCK command with the same name, and returns the same
reply. engine/commands/work describes them; tests/workers/test_backends_agree.py compares the two.
"""

from __future__ import annotations

from penstock.engine.commands.work.rows import LOOK_MS, SEEN_MAX, WAITING, WINDOW_MS
from penstock.engine.commands.work.send import DELAY_WINDOW_MS, DELAYED_GROUP, MOVED_MAX

_PIECES_MAX = 7000  # Lua calls a command with at most 8000 arguments

_COMMON = f"""
local WINDOW, WAITING = {WINDOW_MS}, '{WAITING.decode()}'
local DELAY_WINDOW, DELAYED_GROUP = {DELAY_WINDOW_MS}, '{DELAYED_GROUP.decode()}'
local MOVED_MAX, PIECES_MAX = {MOVED_MAX}, {_PIECES_MAX}
local SEEN_MAX, LOOK = {SEEN_MAX}, {LOOK_MS}
local WRONG = 'WRONGTYPE Operation against a key holding the wrong kind of value'
local at = 0
local function word() at = at + 1; return ARGV[at] end
local function number() return tonumber(word()) end
local function has_type(key, kind)
  local found = redis.call('TYPE', key).ok
  return found == 'none' or found == kind
end
local function fields_of(stream, id)
  local entries = redis.call('XRANGE', stream, id, id)
  return entries[1] and entries[1][2]
end
local function row_of(stream, group, id)
  return redis.call('XPENDING', stream, group, id, id, 1)[1]
end
local function claim(stream, group, consumer, ids, due_in, begun)
  local words = {{'XCLAIM', stream, group, consumer, 0}}
  for _, id in ipairs(ids) do words[#words + 1] = id end
  for _, extra in ipairs({{'IDLE', string.format('%.0f', WINDOW - due_in),
                          'RETRYCOUNT', begun, 'JUSTID'}}) do
    words[#words + 1] = extra
  end
  return redis.call(unpack(words))
end
local function add(stream, fields, extra)
  local words = {{'XADD', stream, '*'}}
  for _, piece in ipairs(fields) do words[#words + 1] = piece end
  for _, piece in ipairs(extra or {{}}) do words[#words + 1] = piece end
  return redis.call(unpack(words))
end
local function bury(stream, dead, group, consumer, id, begun, reason, trace)
  local fields = fields_of(stream, id)
  if fields and #fields > PIECES_MAX then
    fields, reason = {{}}, reason .. ' (its fields are too many for a script, and only in the stream)'
  end
  if fields then
    add(dead, fields, {{'_reason', reason, '_source_stream', stream, '_source_id', id,
      '_traceback', trace, '_attempts', begun, '_group', group, '_consumer', consumer}})
  end
  redis.call('XACK', stream, group, id)
end
local function spent_reason(row)
  if row[2] ~= WAITING then return 'lease expired in attempt ' .. row[4] end
  return row[4] .. ' attempts were begun'
end
local function read_sending()
  local made = {{stream = KEYS[number()], delayed = KEYS[number()], mark = KEYS[number()]}}
  made.delay, made.mark_ms = number(), word()
  made.fields = {{}}
  for _ = 1, number() do made.fields[#made.fields + 1] = word() end
  return made
end
local function can_send(one)
  return has_type(one.stream, 'stream') and (not one.delayed or has_type(one.delayed, 'stream'))
    and (not one.mark or has_type(one.mark, 'string'))
end
local function run_sending(one)
  if one.mark and redis.call('EXISTS', one.mark) == 1 then return false end
  local id
  if one.delay > 0 then
    redis.pcall('XGROUP', 'CREATE', one.delayed, DELAYED_GROUP, '0', 'MKSTREAM')
    id = add(one.delayed, one.fields)
    redis.call('XCLAIM', one.delayed, DELAYED_GROUP, '-', 0, id, 'IDLE',
      string.format('%.0f', DELAY_WINDOW - one.delay), 'FORCE', 'JUSTID')
  else
    id = add(one.stream, one.fields)
  end
  if one.mark then redis.call('SET', one.mark, id, 'PX', one.mark_ms) end
  return id
end
local function has_delayed(delayed)
  return redis.call('EXISTS', delayed) == 1 and redis.call('XLEN', delayed) > 0
end
local function move_due(stream, delayed)
  if not has_delayed(delayed) then return end
  local rows = redis.pcall('XPENDING', delayed, DELAYED_GROUP, 'IDLE',
    string.format('%.0f', DELAY_WINDOW), '-', '+', MOVED_MAX)
  if rows.err then return end
  for _, row in ipairs(rows) do
    local fields = fields_of(delayed, row[1])
    if fields then add(stream, fields) end
    redis.call('XACK', delayed, DELAYED_GROUP, row[1])
    redis.call('XDEL', delayed, row[1])
  end
end
local function owns(key, consumer)
  return redis.call('GET', key) == consumer
end
local NOT_OWNER = redis.error_reply('NOTOWNER another consumer owns this stream, or none')
"""

_TAKE = """
local stream, dead, delayed, owner = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group, consumer, lease, attempts = word(), word(), number(), number()
local count, mode = number(), word()
if not (has_type(dead, 'stream') and has_type(delayed, 'stream')) then
  return redis.error_reply(WRONG)
end
if owner and not owns(owner, consumer) then return NOT_OWNER end
redis.call('XPENDING', stream, group, '-', '+', 1)
-- A script that has written may add without memory: moving and burying come before memory becomes free.
redis.call('XACK', stream, group, '0-0')
move_due(stream, delayed)
local taken, left, buried = {}, 0, {}
local limit = mode == 'ALONE' and 1 or count
local function look(rows, is_first)
  for _, row in ipairs(rows) do
    local id, suspect, begun = row[1], row[2] ~= WAITING, row[4]
    local fields = fields_of(stream, id)
    if mode == 'ANY' and suspect == is_first then
      -- it was looked at before
    elseif not fields then
      redis.call('XACK', stream, group, id)
    elseif begun >= attempts then
      bury(stream, dead, group, consumer, id, begun, spent_reason(row), '')
      buried[#buried + 1] = id
    elseif suspect ~= (mode == 'ALONE') then
      if suspect then left = 1 end
    elseif #taken < limit then
      claim(stream, group, consumer, {id}, lease, begun + 1)
      taken[#taken + 1] = {id, fields, begun + 1, suspect and 1 or 0}
    end
  end
end
local function due(limit, ...)
  return redis.call('XPENDING', stream, group, 'IDLE', WINDOW, '-', '+', limit, ...)
end
if mode == 'ANY' then look(due(count + 100, WAITING), true) end
if mode ~= 'NEW' then look(due(100), false) end
if mode ~= 'ALONE' and #taken < count then
  local served = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', count - #taken,
    'STREAMS', stream, '>')
  if served then
    local begun, ids = mode == 'NEW' and 0 or 1, {}
    for _, entry in ipairs(served[1][2]) do
      ids[#ids + 1] = entry[1]
      taken[#taken + 1] = {entry[1], entry[2], begun, 0}
    end
    claim(stream, group, consumer, ids, lease, begun)
  end
end
local wait = #taken < limit and -1 or 0
local function may_wait(left)
  if wait < 0 or left < wait then wait = left end
end
local function look_ahead(rows, wait_for)
  if #rows >= SEEN_MAX then may_wait(LOOK) end
  for _, row in ipairs(rows) do may_wait(wait_for(row)) end
end
if wait < 0 and mode ~= 'NEW' then
  look_ahead(redis.call('XPENDING', stream, group, '-', '+', SEEN_MAX), function(row)
    local known = row[3] < WINDOW and (row[2] == WAITING or row[2] == consumer)
    return known and WINDOW - row[3] or LOOK
  end)
end
if wait ~= 0 and has_delayed(delayed) then
  local rows = redis.pcall('XPENDING', delayed, DELAYED_GROUP, '-', '+', SEEN_MAX)
  if not rows.err then
    look_ahead(rows, function(row) return math.max(0, DELAY_WINDOW - row[3]) end)
  end
end
local function last(key)
  local entries = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)
  return entries[1] and entries[1][1] or '0-0'
end
return {taken, left, wait, buried, {last(stream), last(delayed)}}
"""

_ADOPT = """
local stream, dead, owner = KEYS[1], KEYS[2], KEYS[3]
local group, consumer, lease, attempts = word(), word(), number(), number()
local start, count = word(), number()
if not has_type(dead, 'stream') then return redis.error_reply(WRONG) end
if not owns(owner, consumer) then return NOT_OWNER end
local rows = redis.call('XPENDING', stream, group, start, '+', count)
local adopted, buried = {}, {}
for _, row in ipairs(rows) do
  local id, begun = row[1], row[4]
  local fields = fields_of(stream, id)
  if not fields then
    redis.call('XACK', stream, group, id)
  elseif row[2] == WAITING then
    adopted[#adopted + 1] = {id, fields, begun, 0, math.max(0, WINDOW - row[3])}
  elseif row[2] ~= consumer and begun >= attempts then
    bury(stream, dead, group, consumer, id, begun, spent_reason(row), '')
    buried[#buried + 1] = id
  else
    claim(stream, group, consumer, {id}, lease, begun)
    adopted[#adopted + 1] = {id, fields, begun, begun > 0 and 1 or 0, 0}
  end
end
if #rows < count then return {adopted, false, buried} end
local ms, seq = string.match(rows[#rows][1], '^(%d+)-(%d+)$')
return {adopted, ms .. '-' .. string.format('%.0f', tonumber(seq) + 1), buried}
"""

_RENEW = """
local stream, owner = KEYS[1], KEYS[2]
local group, consumer, lease = word(), word(), number()
local owned = owner and owns(owner, consumer)
redis.call('XPENDING', stream, group, '-', '+', 1)
local lost = {}
while at < #ARGV do
  local id, begun, now_begun = word(), number(), word()
  local row = row_of(stream, group, id)
  local mine = row and row[4] == begun and (row[2] == consumer or (owned and row[2] == WAITING))
  if not mine or (owner and not owned) then
    lost[#lost + 1] = id
  elseif not fields_of(stream, id) then
    redis.call('XACK', stream, group, id)
    lost[#lost + 1] = id
  else
    claim(stream, group, consumer, {id}, lease, now_begun)
  end
end
return lost
"""

_SETTLE = """
local stream, dead = KEYS[1], KEYS[2]
local group, consumer = word(), word()
local outcomes, adds = {}, false
while at < #ARGV do
  local kind = word()
  adds = adds or kind == 'SEND' or kind == 'DEAD'
  if kind == 'SEND' then
    local sendings = outcomes[#outcomes].sendings
    sendings[#sendings + 1] = read_sending()
  else
    local made = {kind = kind, id = word(), attempt = number(), sendings = {}}
    if kind == 'RETRY' then made.delay, made.begun = number(), word() end
    if kind == 'DEAD' then made.reason, made.trace = word(), word() end
    outcomes[#outcomes + 1] = made
  end
end
if not has_type(dead, 'stream') then return redis.error_reply(WRONG) end
redis.call('XPENDING', stream, group, '-', '+', 1)
for _, one in ipairs(outcomes) do
  for _, sending in ipairs(one.sendings) do
    if not can_send(sending) then return redis.error_reply(WRONG) end
  end
end
-- A script that has written may add without memory: ask before. This changes nothing, but needs memory.
if adds and string.find(redis.pcall('XGROUP', 'CREATE', stream, group, '0').err, 'OOM') then
  return redis.error_reply("OOM command not allowed when used memory > 'maxmemory'.")
end
local accepted = {}
for index, one in ipairs(outcomes) do
  local row = row_of(stream, group, one.id)
  if not (row and row[2] == consumer and row[4] == one.attempt) then
    accepted[index] = 0
  else
    accepted[index] = 1
    if one.kind == 'DEAD' then
      bury(stream, dead, group, consumer, one.id, one.attempt, one.reason, one.trace)
    elseif one.kind == 'RETRY' and fields_of(stream, one.id) then
      claim(stream, group, WAITING, {one.id}, one.delay, one.begun)
    else
      redis.call('XACK', stream, group, one.id)
    end
    for _, sending in ipairs(one.sendings) do run_sending(sending) end
  end
end
return accepted
"""

_SEND = """
local one = read_sending()
if not can_send(one) then return redis.error_reply(WRONG) end
return run_sending(one)
"""

_OWN = """
local consumer, lease, option, other = word(), number(), word(), word()
local owner = redis.call('GET', KEYS[1])
if owner ~= consumer and (option or owner) then return 0 end
if lease > 0 and owner and not other then
  redis.call('PEXPIRE', KEYS[1], lease)
  return 1
end
-- A script that has written may add without memory: a stream must get an owner also then.
redis.call('DEL', KEYS[1])
if lease > 0 then redis.call('SET', KEYS[1], other or consumer, 'PX', lease) end
return 1
"""

_REAP = """
local group, idle, only = word(), number(), word()
redis.call('XPENDING', KEYS[1], group, '-', '+', 1)
local gone = 0
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], group)) do
  local found = {}
  for index = 1, #flat, 2 do found[flat[index]] = flat[index + 1] end
  if found.pending == 0 and found.name ~= WAITING and found.idle >= idle
    and (not only or only == found.name) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], group, found.name)
    gone = gone + 1
  end
end
return gone
"""

SCRIPTS = {
    name: _COMMON + body
    for name, body in {
        "TAKE": _TAKE,
        "ADOPT": _ADOPT,
        "RENEW": _RENEW,
        "SETTLE": _SETTLE,
        "SEND": _SEND,
        "OWN": _OWN,
        "REAP": _REAP,
    }.items()
}
