"""`penstock doctor`: looks at a server or a data directory and finds what is wrong.

finding    a finding, and how dangerous it is
server     rules about a server: settings, log, disk, memory, replication
streams    rules about streams, groups and consumers
asked      streams as a server describes them
directory  rules about a data directory, with a measured fsync
"""
