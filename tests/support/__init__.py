"""Code that several tests share.

builds        checks that a run tests the build that it was started for
campaign      the number of random cases in `make test` and `make soak`
guide         runs the code blocks of the guides
certificates  certificates for TLS
command_line  runs the `penstock` command, in this process or as a child
source_tree   the files of the repository
engine/       engines without a server: commands, golden scripts, recorded sequences
structures/   listpacks and trees without an engine
redis_py/     programs for redis-py that run on the embedded database too
replication/  servers that follow each other
failover/     the failover campaign
servers/      servers and clients, ours and Redis's, with and without sockets
random/       random commands
disk/         a disk in memory, power cuts, data directories
rdb/          RDB files and DUMP payloads
spark/        lakes, pipelines, rows
work/         workers: backends, random sequences, campaigns of kills
"""
