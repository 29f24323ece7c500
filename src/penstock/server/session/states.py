"""What can be special about a client or a server, one bit each; none set means the short way."""

# --- A session ---
STRANGER = 1  # has not given the password yet
IN_MULTI = 2
SUBSCRIBED = 4
BLOCKED = 8  # a command waits, or a pause is on: what comes behind it waits too
CLOSING = 16  # reads no more commands; goes when the replies are out
REPLY_OFF = 32
REPLY_SKIP_NEXT = 64
REPLY_SKIP = 128
MONITOR = 256

# --- The server ---
MONITORED = 1
PAUSED_WRITES = 2
PAUSED_ALL = 4
OUT_OF_MEMORY = 8
LOADING = 16  # the data are still being read
DISK_FAILED = 32  # what is written cannot be kept: no writes
SAVE_FAILED = 64  # the last snapshot could not be made: no writes, if so wished
BROKEN = (
    128  # a command was broken off: nothing in memory may be shown or changed, the server stops
)
