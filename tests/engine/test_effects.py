"""The effects that each command leaves in the journal; replaying them gives the same data.

A case is `commands before | command => effects` and starts at millisecond 1000. An engine that ran only the
effects must hold the same data at the end. Besides commands there are `wait MS`, `sweep` (removes expired
keys), `select N`, `park COMMAND` (which must block), `nodes N` (entries per node), `exec A & B` (a unit) and
`stage KEY ROW, ROW` (a blob of rows).
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from penstock.engine.compat import LEVELS
from penstock.engine.execute import TABLE
from penstock.engine.table import Flags
from penstock.errors import CommandError
from tests.support.engine.effects import Recorder, Replay, texts_of
from tests.support.engine.engine_state import engine_state
from tests.support.engine.engines import command_of
from tests.support.engine.streams import frame_of
from tests.support.servers.raw_redis import Refusal, encode
from tests.support.spark.row_blobs import blob_of

START_MS = 1000
PRIMER = "SET z z"  # selects database 0, so that no case has to start with it

STRINGS = """
SET k v => SET k v
SET k v | SET k w KEEPTTL => SET k w KEEPTTL
SET k v | set k w xx get => SET k w
SET k v | SET k w NX GET =>
SET k w XX =>
SET k v NX => SET k v
SET k v EX 10 => SET k v PXAT 11000
SET k v PX 10 NX GET => SET k v PXAT 1010
SET k v EXAT 20 => SET k v PXAT 20000
SET k v PXAT 20 => SET k v PXAT 20
RPUSH l a | SET l v GET =>
RPUSH l a | SET l v => SET l v
SET k v PX 5; wait 6 | SET k w KEEPTTL => MULTI; DEL k; SET k w KEEPTTL; EXEC
SET k v PX 5; wait 6 | SET k w XX => DEL k
SETEX k 10 v => SET k v PXAT 11000
PSETEX k 10 v => SET k v PXAT 1010
SETNX k v => SETNX k v
SET k v | SETNX k v =>
GETSET k v => GETSET k v
RPUSH l a | GETSET l v =>
SET k v | GETDEL k => GETDEL k
GETDEL k =>
SET k v | GETEX k =>
SET k v | GETEX k EX 10 => PEXPIREAT k 11000
SET k v | GETEX k PX 10 => PEXPIREAT k 1010
SET k v | GETEX k EXAT 10 => PEXPIREAT k 10000
SET k v | GETEX k PXAT 10 => DEL k
SET k v | GETEX k PERSIST =>
SET k v EX 10 | GETEX k PERSIST => PERSIST k
GETEX k EX 10 =>
MSET a 1 b 2 => MSET a 1 b 2
MSETNX a 1 b 2 => MSETNX a 1 b 2
SET b 1 | MSETNX a 1 b 2 =>
SET b 1 PX 1; wait 2 | MSETNX a 1 b 2 => MULTI; DEL b; MSETNX a 1 b 2; EXEC
INCR n => INCR n
DECR n => DECR n
INCRBY n 5 => INCRBY n 5
DECRBY n 5 => DECRBY n 5
SET n x | INCR n =>
SET n 1 EX 10 | INCRBYFLOAT n 0.5 => SET n 1.5 KEEPTTL
INCRBYFLOAT n x =>
APPEND k v => APPEND k v
SETRANGE k 2 v => SETRANGE k 2 v
GET k =>
"""

KEYS = """
SET a 1 | DEL a b => DEL a b
DEL a =>
SET a 1 PX 5; SET b 1; wait 6 | DEL a b => MULTI; DEL a; DEL a b; EXEC
SET a 1 PX 5; wait 6 | DEL a => DEL a
SET a 1 | UNLINK a => UNLINK a
SET a 1 | RENAME a b => RENAME a b
SET a 1 | RENAME a a =>
SET a 1; SET b 1 PX 5; wait 6 | RENAMENX a b => MULTI; DEL b; RENAMENX a b; EXEC
SET a 1; SET b 1 | RENAMENX a b =>
SET a 1 | MOVE a 3 => MOVE a 3
SET a 1; select 3; SET a 1; select 0 | MOVE a 3 =>
SET a 1; select 3; SET a 1 PX 5; wait 6; select 0 | MOVE a 3
    => MULTI; DEL a; SELECT 0; MOVE a 3; EXEC
SET a 1 EX 10 | COPY a b DB 2 REPLACE => COPY a b DB 2 REPLACE
SET a 1; SET b 1 | COPY a b =>
SWAPDB 0 1 => SWAPDB 0 1
SWAPDB 1 1 =>
SET a 1 | FLUSHDB ASYNC => FLUSHDB ASYNC
FLUSHALL SYNC => FLUSHALL SYNC
select 1 | FLUSHDB =>
SET k v | EXPIRE k 10 => PEXPIREAT k 11000
SET k v | PEXPIRE k 10 => PEXPIREAT k 1010
SET k v | EXPIREAT k 10 => PEXPIREAT k 10000
SET k v EX 5 | PEXPIREAT k 9000 GT XX => PEXPIREAT k 9000
SET k v EX 5 | EXPIRE k 9 LT =>
SET k v | EXPIRE k 0 => DEL k
SET k v | PEXPIRE k -5 => DEL k
SET k v | EXPIREAT k 1 => DEL k
SET k v | PEXPIREAT k 1000 => DEL k
EXPIRE k 10 =>
SET k v EX 5 | PERSIST k => PERSIST k
SET k v | PERSIST k =>
SET k v PX 5; wait 6 | GET k => DEL k
SET k v PX 5; wait 6 | TTL k => DEL k
SET k v PX 5; wait 6 | EXPIRE k 5 => DEL k
SET k v PX 5; wait 5 | TYPE k =>
SET a 1 PX 5; SET b 1 PX 6; SET c 1; wait 9 | sweep => DEL a; DEL b
SET a 1; select 2; SET a 1 PX 6; wait 9; select 0; SET b 1 | sweep => SELECT 2; DEL a
SET a 1 | select 1 =>
select 1 | SET a 1 => SELECT 1; SET a 1
select 1; SET a 1; select 0 | SET a 1 => SELECT 0; SET a 1
select 1; SET a 1 PX 5; wait 6 | EXISTS a b => DEL a
exec SET a 1 => SET a 1
exec GET a & TTL b =>
exec SET a 1 & INCR a & GET a & EXPIRE a 1 => MULTI; SET a 1; INCR a; PEXPIREAT a 2000; EXEC
exec SET a 1 & INCR z & DEL a => MULTI; SET a 1; DEL a; EXEC
exec SET a 1 & select 5 & SET a 1 => MULTI; SET a 1; SELECT 5; SET a 1; EXEC
"""

LISTS = """
RPUSH l a b => RPUSH l a b
LPUSH l a => LPUSH l a
LPUSHX l a =>
RPUSH l a | LPUSHX l b => LPUSHX l b
RPUSH l a | RPUSHX l b => RPUSHX l b
RPUSH l a b | LPOP l => LPOP l
RPUSH l a b | RPOP l 5 => RPOP l 5
RPUSH l a b | RPOP l 0 =>
RPUSH l a b | LREM l 0 a => LREM l 0 a
RPUSH l a b | LREM l 0 c =>
RPUSH l a b | LTRIM l 1 -1 => LTRIM l 1 -1
RPUSH l a b | LTRIM l 0 -1 =>
RPUSH l a b | LMOVE l m LEFT RIGHT => LMOVE l m LEFT RIGHT
RPUSH l a b | RPOPLPUSH l m => RPOPLPUSH l m
RPUSH l a b | BLPOP k l 0 => LPOP l
RPUSH l a b | BRPOP l 0 => RPOP l
RPUSH l a b | BLMOVE l m LEFT left 0 => LMOVE l m LEFT left
RPUSH l a b | BRPOPLPUSH l l 0 => RPOPLPUSH l l
RPUSH l a b | BLMOVE l z LEFT left 0 =>
RPUSH l a b | LSET l -1 c => LSET l -1 c
RPUSH l a b | LSET l 2 c =>
RPUSH l a b | linsert l after a c => linsert l after a c
RPUSH l a b | LINSERT l BEFORE x c =>
LINSERT l BEFORE a b =>
RPUSH l a b | LPOS l b =>
RPUSH l a b c | LMPOP 2 k l RIGHT => RPOP l 1
RPUSH l a b c | LMPOP 1 l LEFT COUNT 9 => LPOP l 3
LMPOP 1 l LEFT =>
RPUSH l a b c | BLMPOP 0 2 k l LEFT COUNT 2 => LPOP l 2
RPUSH l a; PEXPIREAT l 1005; RPUSH m b c; wait 9 | LMPOP 2 l m LEFT => MULTI; DEL l; LPOP m 1; EXEC
park BLMPOP 0 1 l LEFT =>
park BLMPOP 0 2 k l RIGHT COUNT 5 | RPUSH l a b => RPUSH l a b; RPOP l 2
park BLMPOP 0 1 l LEFT COUNT 2; park BLPOP l 0 | RPUSH l a b c => RPUSH l a b c; LPOP l 2; LPOP l
RPUSH m a; PEXPIREAT m 1005; wait 9; RPUSH l a | LMOVE l m LEFT LEFT
    => MULTI; DEL m; LMOVE l m LEFT LEFT; EXEC
park BLPOP l 0 =>
park BLPOP k l 0 | RPUSH l a b => RPUSH l a b; LPOP l
park BRPOP l 0; park BLPOP l 0 | RPUSH l a b => RPUSH l a b; RPOP l; LPOP l
park BLMOVE l m LEFT RIGHT 0; park BRPOP m 0 | LPUSH l a => LPUSH l a; LMOVE l m LEFT RIGHT; RPOP m
park BRPOPLPUSH l m 0; select 1 | SET a 1 => SELECT 1; SET a 1
park BRPOPLPUSH l m 0; RPUSH k a; select 1; RPUSH l b | SWAPDB 0 1
    => SWAPDB 0 1; SELECT 0; RPOPLPUSH l m
park BLMOVE l z LEFT LEFT 0 | RPUSH l a => RPUSH l a
"""

ADDED = "XADD s 1 k v; XADD s 2 k v; XADD s 3 k v"
SMALL = "nodes 2; XADD s 1 k v; XADD s 2 k v; XADD s 3 k v; XADD s 4 k v; XADD s 5 k v"

STREAMS = f"""
XADD s * k v => XADD s 1000-0 k v
XADD s 5 k v => XADD s 5-0 k v
XADD s * k v; wait -5 | XADD s * k w => XADD s 1000-1 k w
XADD s 5 k v | XADD s 5-* k v a b => XADD s 5-1 k v a b
XADD s 5 k v | XADD s 4 k v =>
XADD s NOMKSTREAM * k v =>
XADD s 5 k v | XADD s NOMKSTREAM * k v => XADD s 1000-0 k v
XADD s 5 k v | PEXPIREAT s 1010 => PEXPIREAT s 1010
XADD s 5 k v; PEXPIREAT s 1010; wait 11 | XADD s 1 k v => MULTI; DEL s; XADD s 1-0 k v; EXEC
{ADDED} | XADD s MAXLEN 9 * k v => XADD s 1000-0 k v
{ADDED} | XADD s MAXLEN 2 * k v => XADD s MAXLEN = 2 1000-0 k v
{ADDED} | XADD s MAXLEN 0 * k v => XADD s MAXLEN = 0 1000-0 k v
{ADDED} | XADD s MINID 3 * k v => XADD s MINID = 3-0 1000-0 k v
{ADDED} | XADD s MINID 2000 * k v => XADD s MINID = 2000-0 1000-0 k v
{SMALL} | XADD s MAXLEN ~ 5 * k v => XADD s 1000-0 k v
{SMALL} | XADD s MAXLEN ~ 3 * k v => XADD s MAXLEN = 4 1000-0 k v
{SMALL} | XADD s MAXLEN ~ 0 LIMIT 3 * k v => XADD s MAXLEN = 4 1000-0 k v
{SMALL} | XADD s MINID ~ 4 LIMIT 9 * k v => XADD s MINID = 3-0 1000-0 k v
{SMALL}; XDEL s 3 | XADD s MINID ~ 4 LIMIT 9 * k v => XADD s MINID = 4-0 1000-0 k v
{SMALL} | XTRIM s MAXLEN ~ 2 LIMIT 3 => XTRIM s MAXLEN = 3
{SMALL} | XTRIM s MAXLEN ~ 4 =>
{SMALL} | XTRIM s MAXLEN 2 => XTRIM s MAXLEN = 2
{SMALL} | XTRIM s MINID ~ 4 => XTRIM s MINID = 3-0
{SMALL} | XTRIM s MINID ~ 9 => XTRIM s MINID = 9-0
{SMALL} | XTRIM s MINID = 4 => XTRIM s MINID = 4-0
XTRIM s MAXLEN 0 =>
{ADDED} | XDEL s 1 9 => XDEL s 1 9
{ADDED} | XDEL s 9 =>
{ADDED} | XSETID s 9 ENTRIESADDED 20 MAXDELETEDID 8 => XSETID s 9 ENTRIESADDED 20 MAXDELETEDID 8
XSETID s 9 =>
"""

GROUPED = f"{ADDED}; XGROUP CREATE s g 0"
PENDING = f"{GROUPED}; XREADGROUP GROUP g a COUNT 2 STREAMS s >; wait 5"
READ_UP = f"{GROUPED}; XREADGROUP GROUP g a STREAMS s >; wait 5"
ONCE = "TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID"
LATER = "TIME 1005 RETRYCOUNT 1 FORCE JUSTID LASTID"
TWICE = "TIME 1005 RETRYCOUNT 2 FORCE JUSTID LASTID"
MADE = "XGROUP CREATECONSUMER s g"
AT_3 = "XGROUP SETID s g 3-0 ENTRIESREAD 3"
AT_4 = "XGROUP SETID s g 4-0 ENTRIESREAD 4"

GROUPS = f"""
XGROUP CREATE s g $ MKSTREAM => XGROUP CREATE s g $ MKSTREAM
{ADDED} | XGROUP CREATE s g $ ENTRIESREAD 2 => XGROUP CREATE s g $ ENTRIESREAD 2
{GROUPED} | XGROUP CREATE s g 0 =>
{GROUPED} | XGROUP SETID s g $ => XGROUP SETID s g $
{GROUPED} | XGROUP CREATECONSUMER s g a => XGROUP CREATECONSUMER s g a
{PENDING} | XGROUP CREATECONSUMER s g a =>
{PENDING} | XGROUP DELCONSUMER s g a => XGROUP DELCONSUMER s g a
{PENDING} | XGROUP DELCONSUMER s g b =>
{PENDING} | XGROUP DESTROY s g => XGROUP DESTROY s g
{PENDING} | XGROUP DESTROY s h =>
{PENDING} | XACK s g 1 3 => XACK s g 1 3
{PENDING} | XACK s g 3 =>
{GROUPED} | XREADGROUP GROUP g a STREAMS s >
    => MULTI; {MADE} a; XCLAIM s g a 0 1-0 2-0 3-0 {ONCE} 3-0; {AT_3}; EXEC
{PENDING} | XREADGROUP GROUP g a STREAMS s > => MULTI; XCLAIM s g a 0 3-0 {LATER} 3-0; {AT_3}; EXEC
{PENDING} | XREADGROUP GROUP g a NOACK STREAMS s > => {AT_3}
{PENDING} | XREADGROUP GROUP g b NOACK STREAMS s > => MULTI; {MADE} b; {AT_3}; EXEC
{READ_UP} | XREADGROUP GROUP g a STREAMS s > =>
{READ_UP} | XREADGROUP GROUP g b STREAMS s > => {MADE} b
{PENDING} | XREADGROUP GROUP g a STREAMS s 0 => XCLAIM s g a 0 1-0 2-0 {TWICE} 2-0
{PENDING} | XREADGROUP GROUP g a COUNT 1 STREAMS s 1 => XCLAIM s g a 0 2-0 {TWICE} 2-0
{PENDING}; XDEL s 1 | XREADGROUP GROUP g a STREAMS s 0 => XCLAIM s g a 0 2-0 {TWICE} 2-0
{PENDING}; XDEL s 1 2 | XREADGROUP GROUP g a STREAMS s 0 =>
{PENDING} | XREADGROUP GROUP g b STREAMS s 0 => {MADE} b
{PENDING}; XREADGROUP GROUP g b STREAMS s >; XGROUP SETID s g 1 | XREADGROUP GROUP g b COUNT 1 STREAMS s >
    => MULTI; XCLAIM s g b 0 2-0 {LATER} 2-0; XGROUP SETID s g 2-0 ENTRIESREAD -1; EXEC
{READ_UP}; XGROUP CREATE t g 0 MKSTREAM; XADD t 7 k v | XREADGROUP GROUP g a STREAMS s t 2 >
    => MULTI; XCLAIM s g a 0 3-0 {TWICE} 3-0; XGROUP CREATECONSUMER t g a;
    XCLAIM t g a 0 7-0 {LATER} 7-0; XGROUP SETID t g 7-0 ENTRIESREAD 1; EXEC
{READ_UP}; park XREADGROUP GROUP g a BLOCK 0 STREAMS s > | XADD s 4 k v
    => XADD s 4-0 k v; MULTI; XCLAIM s g a 0 4-0 {LATER} 4-0; {AT_4}; EXEC
{READ_UP} | park XREADGROUP GROUP g b BLOCK 0 STREAMS s > => {MADE} b
{READ_UP}; park XREADGROUP GROUP g a NOACK BLOCK 0 STREAMS s > | XADD s 4 k v
    => XADD s 4-0 k v; {AT_4}
{READ_UP}; park XREADGROUP GROUP g a BLOCK 0 STREAMS s > | XGROUP DESTROY s g => XGROUP DESTROY s g
{READ_UP}; park XREADGROUP GROUP g a BLOCK 0 STREAMS s > | exec XADD s 4 k v & DEL s
    => MULTI; XADD s 4-0 k v; DEL s; EXEC
{PENDING} | XCLAIM s g a 0 1 => XCLAIM s g a 0 1-0 {TWICE} 2-0
{PENDING} | XCLAIM s g b 0 1 2 JUSTID => MULTI; {MADE} b; XCLAIM s g b 0 1-0 2-0 {LATER} 2-0; EXEC
{PENDING} | XCLAIM s g a 0 1 IDLE 105 RETRYCOUNT 9
    => XCLAIM s g a 0 1-0 TIME 900 RETRYCOUNT 9 FORCE JUSTID LASTID 2-0
{PENDING} | XCLAIM s g a 0 3 FORCE LASTID 3 => XCLAIM s g a 0 3-0 {TWICE} 3-0
{PENDING}; XCLAIM s g a 0 1 JUSTID | XCLAIM s g a 0 1 2 TIME 3
    => XCLAIM s g a 0 1-0 2-0 TIME 3 RETRYCOUNT 2 FORCE JUSTID LASTID 2-0
{PENDING}; XCLAIM s g a 0 1 | XCLAIM s g a 0 1 2
    => MULTI; XCLAIM s g a 0 1-0 TIME 1005 RETRYCOUNT 3 FORCE JUSTID LASTID 2-0;
    XCLAIM s g a 0 2-0 {TWICE} 2-0; EXEC
{PENDING} | XCLAIM s g a 0 9 LASTID 7 => XGROUP SETID s g 7-0 ENTRIESREAD 2
{PENDING} | XCLAIM s g a 100 1 =>
{PENDING} | XCLAIM s g b 100 1 => {MADE} b
{PENDING}; XDEL s 1 | XCLAIM s g a 0 1 2
    => MULTI; XCLAIM s g a 0 2-0 {TWICE} 2-0; XACK s g 1-0; EXEC
{PENDING}; XDEL s 1 | XCLAIM s g b 0 1 => MULTI; {MADE} b; XACK s g 1-0; EXEC
{PENDING} | XAUTOCLAIM s g a 0 0 COUNT 1 => XCLAIM s g a 0 1-0 {TWICE} 2-0
{PENDING} | XAUTOCLAIM s g b 0 0 JUSTID => MULTI; {MADE} b; XCLAIM s g b 0 1-0 2-0 {LATER} 2-0; EXEC
{PENDING}; XDEL s 1 | XAUTOCLAIM s g a 0 0
    => MULTI; XCLAIM s g a 0 2-0 {TWICE} 2-0; XACK s g 1-0; EXEC
{PENDING} | XAUTOCLAIM s g a 100 0 =>
{PENDING} | XREAD STREAMS s 0 =>
"""

# Before 7.2 only a successful request created the consumer.
GROUPS_7_0 = f"""
{READ_UP} | XREADGROUP GROUP g b STREAMS s > =>
{READ_UP}; park XREADGROUP GROUP g b BLOCK 0 STREAMS s > | XADD s 4 k v
    => XADD s 4-0 k v; MULTI; {MADE} b; XCLAIM s g b 0 4-0 {LATER} 4-0; {AT_4}; EXEC
{PENDING} | XREADGROUP GROUP g a STREAMS s 0 => XCLAIM s g a 0 1-0 2-0 {TWICE} 2-0
{PENDING}; XDEL s 1 2 | XREADGROUP GROUP g a STREAMS s 0 =>
{PENDING} | XREADGROUP GROUP g b STREAMS s 0 => {MADE} b
{PENDING} | XCLAIM s g b 100 1 =>
{PENDING}; XDEL s 1 | XCLAIM s g b 0 1 => XACK s g 1-0
{PENDING} | XAUTOCLAIM s g b 100 0 =>
"""

TWO_GROUPS = f"{PENDING}; XGROUP CREATE s h 0; XREADGROUP GROUP h x COUNT 1 STREAMS s >"
DONE = f"{READ_UP}; XACK s g 1 3"
KNOWN = "XADD s IDMP p m * k v"
GIVEN_BACK = f"{READ_UP}; XNACK s g FAIL IDS 2 3 1"

REDIS_8 = f"""
{PENDING} | XDELEX s IDS 2 1 9 => XDELEX s IDS 2 1 9
{PENDING} | XDELEX s DELREF IDS 1 1 => XDELEX s DELREF IDS 1 1
{PENDING}; XDEL s 1 | XDELEX s DELREF IDS 1 1 => XDELEX s DELREF IDS 1 1
{PENDING} | XDELEX s ACKED IDS 2 1 3 =>
{PENDING}; XACK s g 1 | XDELEX s ACKED IDS 2 1 2 => XDELEX s ACKED IDS 2 1 2
{PENDING} | XDELEX s IDS 1 9 =>
{PENDING} | XACKDEL s g IDS 2 1 3 => XACKDEL s g IDS 2 1 3
{TWO_GROUPS} | XACKDEL s g DELREF IDS 1 1 => XACKDEL s g DELREF IDS 1 1
{TWO_GROUPS} | XACKDEL s g ACKED IDS 1 1 => XACKDEL s g ACKED IDS 1 1
{PENDING}; XDEL s 1 | XACKDEL s g IDS 1 1 => XACKDEL s g IDS 1 1
{PENDING} | XACKDEL s g IDS 1 3 =>
{DONE} | XTRIM s MAXLEN 0 ACKED => XTRIM s MAXLEN = 1 ACKED
{DONE} | XTRIM s MINID 3 ACKED => XTRIM s MAXLEN = 2 ACKED
{PENDING} | XTRIM s MAXLEN 0 ACKED =>
{DONE} | XADD s MAXLEN ~ 0 ACKED * k v => XADD s MAXLEN = 2 ACKED 1005-0 k v
{PENDING} | XADD s MAXLEN 1 DELREF 9 k v => XADD s MAXLEN = 1 DELREF 9-0 k v
{PENDING} | XTRIM s MINID ~ 2 DELREF => XTRIM s MINID = 2-0 DELREF
{PENDING} | XTRIM s MAXLEN 2 KEEPREF => XTRIM s MAXLEN = 2
XADD s IDMP p m * k v => XADD s IDMP p m 1000-0 k v
{KNOWN} | XADD s IDMP p m * k w => XADD s IDMP p m * k w
{KNOWN} | XADD s IDMP p m MAXLEN 0 * k w => XADD s IDMP p m * k w
{KNOWN}; wait 200000 | XADD s IDMP p m * k w => XADD s IDMP p m 201000-0 k w
{KNOWN}; wait 5 | XADD s IDMP q m MAXLEN 1 * k v => XADD s IDMP q m MAXLEN = 1 1005-0 k v
XADD s IDMP p m NOMKSTREAM * k v =>
{KNOWN} | XCFGSET s IDMP-DURATION 9 IDMP-MAXSIZE 2 => XCFGSET s IDMP-DURATION 9 IDMP-MAXSIZE 2
{KNOWN} | XCFGSET s IDMP-DURATION 100 =>
{ADDED} | XIDMPRECORD s p m 2 => XIDMPRECORD s p m 2
{ADDED}; XIDMPRECORD s p m 2 | XIDMPRECORD s p m 2-0 =>
{PENDING} | XREADGROUP GROUP g b CLAIM 5 STREAMS s >
    => MULTI; {MADE} b; XCLAIM s g b 0 1-0 2-0 {TWICE} 3-0; XCLAIM s g b 0 3-0 {LATER} 3-0; {AT_3}; EXEC
{PENDING} | XREADGROUP GROUP g a CLAIM 5 COUNT 1 STREAMS s > => XCLAIM s g a 0 1-0 {TWICE} 2-0
{READ_UP} | XREADGROUP GROUP g a CLAIM 6 STREAMS s > =>
{PENDING} | XREADGROUP GROUP g a CLAIM 6 NOACK STREAMS s > => {AT_3}
{READ_UP}; park XREADGROUP GROUP g a BLOCK 0 CLAIM 9 STREAMS s >; wait 4 | retry
    => XCLAIM s g a 0 1-0 2-0 3-0 TIME 1009 RETRYCOUNT 2 FORCE JUSTID LASTID 3-0
{READ_UP}; park XREADGROUP GROUP g a BLOCK 0 CLAIM 9 STREAMS s >; wait 3 | retry =>
{PENDING} | XNACK s g FAIL IDS 3 2 1 3 => XNACK s g FAIL IDS 2 2-0 1-0 RETRYCOUNT 1 FORCE
{PENDING} | XNACK s g SILENT IDS 1 2 => XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 0 FORCE
{PENDING} | XNACK s g SILENT IDS 1 2 RETRYCOUNT 7 => XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 7 FORCE
{PENDING} | XNACK s g FATAL IDS 2 3 9 FORCE => XNACK s g FAIL IDS 1 3-0 RETRYCOUNT {2**63 - 1} FORCE
{PENDING}; XCLAIM s g a 0 2 | XNACK s g FAIL IDS 2 2 1
    => MULTI; XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 2 FORCE; XNACK s g FAIL IDS 1 1-0 RETRYCOUNT 1 FORCE; EXEC
{PENDING} | XNACK s g FAIL IDS 1 3 =>
{GIVEN_BACK} | XREADGROUP GROUP g a CLAIM 99 STREAMS s > => XCLAIM s g a 0 3-0 1-0 {TWICE} 3-0
{GIVEN_BACK} | XACK s g 1 => XACK s g 1
{GIVEN_BACK} | XCLAIM s g a 0 1 => XCLAIM s g a 0 1-0 {TWICE} 3-0
{READ_UP}; park XREADGROUP GROUP g a BLOCK 0 CLAIM 99 STREAMS s > | XNACK s g FAIL IDS 1 2
    => XNACK s g FAIL IDS 1 2-0 RETRYCOUNT 1 FORCE; XCLAIM s g a 0 2-0 {TWICE} 3-0
"""

BATCHES = """
stage p k a, k b l c; stage q k d | PENSTOCK APPENDBATCH 3 4 r s p q
    => MULTI; XADD s 1000-0 k a; XADD s 1000-1 k b l c; XADD s 1000-2 k d; SET r 3; DEL p q; EXEC
stage p k a; SET r 3 | PENSTOCK APPENDBATCH 3 4 r s p q => DEL p
SET r 3 | PENSTOCK APPENDBATCH 2 3 r s p =>
PENSTOCK APPENDBATCH 2 3 r s p =>
stage p; SET r 2 EX 10 | PENSTOCK APPENDBATCH 3 3 r s p => MULTI; SET r 3; DEL p; EXEC
XADD s 5000-7 k z; stage p k a, k b | PENSTOCK APPENDBATCH 3 3 r s p MAXLEN 1
    => MULTI; XADD s 5000-8 k a; XADD s 5000-9 k b; XTRIM s MAXLEN = 1; SET r 3; DEL p; EXEC
nodes 2; XADD s 1 k z; stage p k a, k b | PENSTOCK APPENDBATCH 3 3 r s p MINID ~ 1000-1
    => MULTI; XADD s 1000-0 k a; XADD s 1000-1 k b; XTRIM s MINID = 1000-1; SET r 3; DEL p; EXEC
nodes 9; XADD s 1 k z; stage p k a | PENSTOCK APPENDBATCH 3 3 r s p MINID ~ 1000
    => MULTI; XADD s 1000-0 k a; SET r 3; DEL p; EXEC
SET r 9 PX 5; stage p k a; wait 6 | PENSTOCK APPENDBATCH 3 3 r s p
    => MULTI; DEL r; XADD s 1006-0 k a; SET r 3; DEL p; EXEC
"""

# Idle times count back from now, so the time is a day, or ten years, after 1970.
DAY = "wait 86400000"
TEN_YEARS = "wait 315360000000"
WORKED = f"{DAY}; XADD s 1 k a; XGROUP CREATE s g 0; XREADGROUP GROUP g c STREAMS s >"
OWNED = f"{WORKED}; SET o c"
TAKE = "PENSTOCK TAKE 3 s s:dead s:delayed g c 30000 3 10"

WORK = f"""
{DAY}; XADD s 1 k a; XADD s 2 k b; XGROUP CREATE s g 0 | {TAKE} ANY
    => MULTI; XGROUP CREATECONSUMER s g c;
    XCLAIM s g c 0 1-0 2-0 TIME 86401000 RETRYCOUNT 1 FORCE JUSTID LASTID 2-0;
    XGROUP SETID s g 2-0 ENTRIESREAD 2;
    XCLAIM s g c 0 1-0 2-0 TIME 31000 RETRYCOUNT 1 FORCE JUSTID LASTID 2-0; EXEC
{WORKED} | {TAKE} ANY =>
{WORKED}; {DAY} | PENSTOCK TAKE 3 s s:dead s:delayed g d 30000 3 10 ALONE
    => MULTI; XGROUP CREATECONSUMER s g d;
    XCLAIM s g d 0 1-0 TIME 86431000 RETRYCOUNT 2 FORCE JUSTID LASTID 1-0; EXEC
{WORKED}; {DAY} | PENSTOCK TAKE 3 s s:dead s:delayed g c 30000 1 10 ANY
    => MULTI; XADD s:dead 172801000-0 k a _reason lease expired in attempt 1 _source_stream s
    _source_id 1-0 _traceback  _attempts 1 _group g _consumer c; XACK s g 1-0; EXEC
{TEN_YEARS}; PENSTOCK SEND 2 s s:delayed 1 2 0 5 1 2 k a; XGROUP CREATE s g 0 MKSTREAM; wait 5
    | PENSTOCK TAKE 3 s s:dead s:delayed g c 30000 3 10 ANY
    => MULTI; XADD s 315360001005-0 k a; XACK s:delayed penstock 315360001000-0;
    XDEL s:delayed 315360001000-0; XGROUP CREATECONSUMER s g c;
    XCLAIM s g c 0 315360001005-0 TIME 315360001005 RETRYCOUNT 1 FORCE JUSTID LASTID 315360001005-0;
    XGROUP SETID s g 315360001005-0 ENTRIESREAD 1;
    XCLAIM s g c 0 315360001005-0 TIME 315273631005 RETRYCOUNT 1 FORCE JUSTID LASTID 315360001005-0;
    EXEC
{OWNED} | PENSTOCK ADOPT 3 s s:dead o g c 30000 3 0-0 10
    => XCLAIM s g c 0 1-0 TIME 31000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-0
{WORKED} | PENSTOCK ADOPT 3 s s:dead o g c 30000 3 0-0 10 =>
{WORKED} | PENSTOCK RENEW 1 s g c 30000 1-0 1 1
    => XCLAIM s g c 0 1-0 TIME 31000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-0
{WORKED} | PENSTOCK RENEW 1 s g d 30000 1-0 1 1 =>
{WORKED} | PENSTOCK SETTLE 3 s s:dead t g c ACK 1-0 1 SEND 3 0 0 0 1 2 k b
    => MULTI; XACK s g 1-0; XADD t 86401000-0 k b; EXEC
{WORKED} | PENSTOCK SETTLE 3 s s:dead t g c ACK 1-0 2 SEND 3 0 0 0 1 2 k b =>
{WORKED} | PENSTOCK SETTLE 2 s s:dead g c RETRY 1-0 1 5000 1
    => MULTI; XGROUP CREATECONSUMER s g waiting;
    XCLAIM s g waiting 0 1-0 TIME 6000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-0; EXEC
{WORKED} | PENSTOCK SETTLE 2 s s:dead g c DEAD 1-0 1 bad trace
    => MULTI; XADD s:dead 86401000-0 k a _reason bad _source_stream s _source_id 1-0 _traceback trace
    _attempts 1 _group g _consumer c; XACK s g 1-0; EXEC
PENSTOCK SEND 2 s m 1 0 2 0 5 2 k a => MULTI; XADD s 1000-0 k a; SET m 1000-0 PXAT 1005; EXEC
SET m 1 | PENSTOCK SEND 2 s m 1 0 2 0 5 2 k a =>
{TEN_YEARS} | PENSTOCK SEND 2 s d 1 2 0 5 1 2 k a
    => MULTI; XGROUP CREATE d penstock 0 MKSTREAM; XADD d 315360001000-0 k a;
    XGROUP CREATECONSUMER d penstock -;
    XCLAIM d penstock - 0 315360001000-0 TIME 1005 RETRYCOUNT 1 FORCE JUSTID LASTID 0-0; EXEC
PENSTOCK OWN 1 o c 50 => SET o c PXAT 1050
PENSTOCK OWN 1 o c 50 KEEP =>
SET o c | PENSTOCK OWN 1 o c 50 KEEP => SET o c PXAT 1050
SET o c | PENSTOCK OWN 1 o c 50 TO d => SET o d PXAT 1050
SET o d | PENSTOCK OWN 1 o c 50 TO c =>
PENSTOCK OWN 1 o c 50 TO d =>
SET o d | PENSTOCK OWN 1 o c 50 =>
SET o c | PENSTOCK OWN 1 o c 0 => DEL o
{WORKED}; XACK s g 1 | PENSTOCK REAP 1 s g 0 => XGROUP DELCONSUMER s g c
{WORKED} | PENSTOCK REAP 1 s g 0 =>
"""

NEWEST = [STRINGS, KEYS, LISTS, STREAMS, GROUPS, REDIS_8, BATCHES, WORK]


def cases_of(*tables: str) -> list[str]:
    """The cases of a table, each with the indented lines that follow it."""
    lines = "\n".join(table.strip() for table in tables)
    return lines.replace("\n    ", " ").splitlines()


def parts_of(case: str) -> tuple[str, str, str]:
    """The commands before, the command, and its effects."""
    asked, effects = case.split("=>")
    before, _, line = asked.rpartition("|")
    return before.strip(), line.strip(), effects.strip()


@pytest.mark.parametrize("case", cases_of(*NEWEST))
def test_effects_of(case: str) -> None:
    newest = list(LEVELS)[-1]
    check(case, Recorder(newest, START_MS), Replay(newest))


@pytest.mark.parametrize("case", cases_of(GROUPS_7_0))
def test_effects_in_7_0_of(case: str) -> None:
    check(case, Recorder("7.0", START_MS), Replay("7.0"))


def check(case: str, bench: Recorder, replay: Replay) -> None:
    before, line, effects = parts_of(case)
    play(bench, replay, PRIMER)
    for earlier in filter(None, before.split("; ")):
        play(bench, replay, earlier)
    bench.take()
    play(bench, replay, line)
    assert "; ".join(texts_of(bench.take())) == effects
    replay.feed(bench.data)
    assert replay.state() == engine_state(bench.engine)


def play(bench: Recorder, replay: Replay, line: str) -> None:
    """Run one command or directive of a case."""
    word, _, rest = line.strip().partition(" ")
    if word == "wait":
        bench.clock.at_ms += int(rest)
    elif word == "sweep":
        bench.engine.expire_due(100)
    elif word == "select":
        bench.select(int(rest))
    elif word == "nodes":
        bench.engine.limits.entries_max = replay.engine.limits.entries_max = int(rest)
    elif word == "park":
        bench.park(rest)
    elif word == "retry":
        for waiter in bench.engine.waiters.all():
            bench.engine.retry(waiter)
    elif word == "stage":
        key, _, rows = rest.partition(" ")
        bench.run("RPUSH", key, blob_of(*[row.split() for row in rows.split(", ") if row]))
    elif word == "exec":
        run_unit(bench, rest.split(" & "))
    else:
        bench.ask(line)


def run_unit(bench: Recorder, lines: list[str]) -> None:
    """Run commands as EXEC does."""
    selected = bench.engine.context.keyspace
    bench.journal.begin()
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "select":
            bench.select(int(rest))
        else:
            command, pieces = command_of(line.split())
            with suppress(CommandError):
                bench.engine.run(command, frame_of(*pieces))
    bench.journal.end()
    bench.engine.context.keyspace = selected
    bench.engine.serve_waiters()


def test_every_command_that_writes_has_a_case() -> None:
    lines = [parts_of(case)[1] for case in cases_of(*NEWEST)]
    names = {command_of(line.split())[0].name for line in lines if line[0].isupper()}
    assert names >= {command.name for command in TABLE.values() if command.flags & Flags.WRITE}


# --- Doing effects again ----------------------------------------------------------------------------


def replayed(*lines: str) -> Replay:
    replay = Replay()
    for line in lines:
        replay.feed(encode(line.encode().split(b" ")))
    return replay


def test_a_limit_behind_an_exact_trim_is_taken_while_replaying_only() -> None:
    """Redis keeps the LIMIT of an approximate trim in its log, after the `=` that it writes there."""
    adds = [f"XADD s {number} k v" for number in range(1, 8)]
    trims = ["XADD s MAXLEN = 6 LIMIT 1 8 k v", "XTRIM s MINID = 5 LIMIT 1"]
    replay = replayed(*adds, *trims)
    assert [entry[0] for entry in replay.ask([b"XRANGE", b"s", b"-", b"+"])] == [
        *(b"5-0", b"6-0", b"7-0", b"8-0")
    ]
    bench = Recorder()
    refusal = Refusal("ERR syntax error, LIMIT cannot be used without the special ~ option")
    assert [bench.ask(line) for line in trims] == [refusal, refusal]


def test_an_approximate_trim_has_no_limit_of_its_own_while_replaying() -> None:
    replay = Replay()
    replay.engine.limits.entries_max = 1
    for number in range(1, 150):
        replay.feed(encode([b"XADD", b"s", b"%d" % number, b"k", b"v"]))
    replay.feed(encode([b"XTRIM", b"s", b"MAXLEN", b"~", b"5"]))
    assert replay.ask([b"XLEN", b"s"]) == 5


def test_no_time_is_over_while_replaying() -> None:
    replay = replayed("SET k v PXAT 1", "SET l v", "PEXPIREAT l 1", "APPEND k w", "RENAME k m")
    assert replay.state() == ["0 'l' goes 1", "  string 'v'", "0 'm' goes 1", "  string 'vw'"]
    replay.clock.at_ms = 2
    assert replay.ask([b"EXISTS", b"l", b"m"]) == 0


def test_the_time_of_a_claim_is_used_as_given_while_replaying() -> None:
    claim = "XCLAIM s g a 0 1-0 TIME 1700000000000 RETRYCOUNT 3 FORCE JUSTID LASTID 1-0"
    replay = replayed("XADD s 1 k v", "XGROUP CREATE s g 0", claim)
    assert replay.state()[-1] == "    pending 1-0 to 'a' at 1700000000000 x3"


def test_counts_that_redis_has_let_wrap_are_the_largest_while_replaying() -> None:
    wrapped = -(2**63) + 5
    replay = replayed(
        "XADD s 1 k v",
        f"XSETID s 1-0 ENTRIESADDED {wrapped}",
        f"XGROUP CREATE s g 0 ENTRIESREAD {wrapped}",
        f"XCLAIM s g a 0 1-0 TIME 1000 RETRYCOUNT {wrapped} FORCE JUSTID",
    )
    lines = replay.state()
    assert f"added={2**63 - 1}" in lines[1]
    assert lines[3].endswith(f"read={2**63 - 1}")
    assert lines[-1].endswith(f"x{2**63 - 1}")


def test_a_claim_at_a_time_before_1970_is_one_at_no_time() -> None:
    """Written unchanged, it would be a snapshot that no reader accepts."""
    claim = "XCLAIM s g a 0 1-0 TIME -5 RETRYCOUNT 3 FORCE JUSTID LASTID 1-0"
    replay = replayed("XADD s 1 k v", "XGROUP CREATE s g 0", claim)
    assert replay.state()[-1] == "    pending 1-0 to 'a' at 0 x3"


def test_a_claim_of_a_deleted_entry_removes_its_record_as_redis_writes_it() -> None:
    """Redis 7.0 writes no XACK for it, but the claim of the consumer that owned it."""
    claim = "XCLAIM s g a 0 1-0 TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-0"
    replay = replayed("XADD s 1 k v", "XGROUP CREATE s g 0", claim, "XDEL s 1", claim)
    assert replay.state()[-1] == "    consumer 'a'"
