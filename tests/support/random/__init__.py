"""Random commands. The same seed gives the same commands.

stream_commands   streams, groups, claims
key_commands      strings, keys, expiry, several databases
list_commands     lists
session_commands  whole sessions: all of these, transactions, messages, malformed input
acl_rules         rules for users, and commands that they allow or forbid
effects           random work on an engine whose effects are recorded
rdb_workload      data that use every feature of a snapshot
stream_extras     names of producers and returned entries, with numbers at their limits
"""
