"""What commands mean: keyspace, command table, execution, blocked readers. No sockets, no disk.

execute     the Engine: checks a command, runs it, serves blocked readers
table       the command table: one row for each command
lookup      finds the row of a command
arguments   reads the arguments of a command
context     what a command may use while it runs
keyspace    the keys of one database and their values
key_map     the keys of a database, in segments; SCAN and RANDOMKEY
waiters     blocked readers, by key
effects     the changes of a command, as commands that can be replayed
events      keyspace notifications
channels    pub/sub
compat      the differences between versions of Redis
retention/  how long entries and idle consumers are kept
digest      a checksum of all data (DEBUG DIGEST)
clock, wall_clock   where the time comes from
dice        random numbers that repeat, for engines without their own
commands/   the commands themselves
"""
