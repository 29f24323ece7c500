"""`penstock backup` and `penstock restore`.

note       what is known of a backup: a small JSON file beside it
taking     receives a snapshot from a running server, as a replica would
reading    reads a backup from start to end, to check it
restoring  makes a data directory of a backup
"""
