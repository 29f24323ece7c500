"""The commands on data. Each module ends with its rows of the command table.

streams/     the X commands and PENSTOCK
keys         DEL, EXISTS, TYPE, RENAME, OBJECT
expiry       EXPIRE, TTL, PERSIST and their variants
scan         KEYS, SCAN, RANDOMKEY
databases    COPY, MOVE, SWAPDB, FLUSHDB, FLUSHALL, DBSIZE
strings      GET, SET and their variants
substrings   APPEND, GETRANGE, SETRANGE, STRLEN
numbers      INCR and its variants
lists        LPUSH, LPOP, LRANGE and so on
list_moves   LMOVE and the blocking list commands
help         the replies to HELP subcommands
"""
