"""The append-only file: writing, syncing, replaying.

journal       encodes effects as bytes of the log, collected until the end of a turn
record_bytes  the functions that write the usual effects in one pass
batch         the line before each write that holds its length and checksum
increment     the file that is being appended to
commit        group commit: one write and one fsync for many commands; when replies may leave
sync_thread   runs fsync in a thread, so that the event loop never waits
manifest      which files make up the log, and in which order
file_crc      the checksum of a whole file
replay        runs the commands of a file again
effect_runner  runs effects one after the other, from a file or from a primary
commands_out  writes all data as commands: a base file without an RDB preamble
"""
