"""The state bits of clients and servers. If none is set, commands take the fast path."""

# --- A session ---
STRANGER = 1  # has not authenticated
IN_MULTI = 2
SUBSCRIBED = 4
BLOCKED = 8  # a command is blocked or paused, and all commands after it wait
CLOSING = 16  # runs no more commands; is closed when its replies are sent
REPLY_OFF = 32
REPLY_SKIP_NEXT = 64
REPLY_SKIP = 128
MONITOR = 256
REPLICA = 512  # a server that follows this one

# --- What replies of a session follow from (Session.keyed) ---
KEYED_READ = 1  # data was read
KEYED_WRITE = 2  # data was changed

# --- The server ---
MONITORED = 1
PAUSED_WRITES = 2
PAUSED_ALL = 4
OUT_OF_MEMORY = 8
LOADING = 16  # the data is being loaded
DISK_FAILED = 32  # the log cannot be written: no writes
SAVE_FAILED = 64  # the last snapshot failed and stop-writes-on-bgsave-error is set: no writes
NO_REPLICAS = 256  # too few replicas: no writes
READ_ONLY = 512  # a replica: no writes
MASTER_DOWN = 1024  # a replica that has lost its primary and must not show old data
BROKEN = 128  # a command failed halfway: no data may be read or changed, the server stops
