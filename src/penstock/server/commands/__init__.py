"""Commands on clients and on the server. Commands on data are in engine/commands.

clients/        CLIENT, ACL, and what a client does to its connection
config          CONFIG
info            INFO
introspection   COMMAND
persistence     SAVE, BGSAVE, BGREWRITEAOF
replication     REPLICAOF, ROLE, FAILOVER, PSYNC, REPLCONF
waits           WAIT, WAITAOF
pubsub          SUBSCRIBE, PUBLISH, SSUBSCRIBE, SPUBLISH, PUBSUB
transactions    MULTI, EXEC, DISCARD, WATCH, UNWATCH
admin           TIME, LASTSAVE, SHUTDOWN
debug           DEBUG
latency         LATENCY
memory          MEMORY
monitor         MONITOR
slowlog         SLOWLOG
"""
