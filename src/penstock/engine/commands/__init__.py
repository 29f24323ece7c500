"""The commands on data. Each module ends with its rows of the command table.

streams/     the X commands and PENSTOCK
work/        the PENSTOCK commands of workers
retention    PENSTOCK GROUPS, PENSTOCK RETENTION
keys         DEL, EXISTS, TYPE, RENAME, OBJECT
expiry       EXPIRE, TTL, PERSIST and their variants
scan         KEYS, SCAN, RANDOMKEY
databases    COPY, MOVE, SWAPDB, FLUSHDB, FLUSHALL, DBSIZE
strings      GET, SET and their variants
substrings   APPEND, GETRANGE, SETRANGE, STRLEN
numbers      INCR and its variants
lists        LPUSH, LPOP, LRANGE and so on
list_edits   LSET, LINSERT, LPOS
list_pops    LMPOP, BLMPOP, BLPOP, BRPOP
list_moves   LMOVE, RPOPLPUSH, BLMOVE, BRPOPLPUSH
help         the replies to HELP subcommands
"""
