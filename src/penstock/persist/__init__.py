"""Everything on disk: the append-only file, snapshots, recovery. The only fsync is in disk.py.

store         one data directory and the engine whose data it holds
recovery      from the files of a directory to data in memory
disk          the file operations, and the only fsync
watched_disk  the same, with syncs that are timed or delayed
replication_point  the place of data in a replication history
layout        the names and places of the files
snapshot      writes all data of an engine to a file
child         the forked process that writes a snapshot
health        what happens when the disk fails, and when writes resume
backoff       when to retry after a failure
rows          all commands that may appear in a log
offline       reads streams from files, without a server
reading       reads a file in chunks
aof/          the append-only file
rdb/          RDB files and DUMP payloads
check/        `penstock check`: finds damage, writes a repaired copy
commands/     DUMP and RESTORE
"""
