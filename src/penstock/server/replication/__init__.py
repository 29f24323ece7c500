"""Replication: a primary sends the effects of its commands to replicas, which apply them.

replication   the role of this server; connects the other modules
history       the ids of the data, and how many bytes of their stream it has seen
backlog       the last bytes of the stream
feed          turns effects into the stream, and sends it
names_apart   rewrites entries with names of producers for replicas that do not know them
replicas      the connected replicas: what they announced, their state, their acks
partial_sync  decides whether a replica can continue, or needs a snapshot
full_sync     sends a snapshot to replicas
ack_waits     replies and clients that wait for replicas
primary_link  the connection of a replica to its primary
sync_file     receives a snapshot and loads it
own_changes   keeps what only this server has, before its data is replaced
applying      applies the primary's stream
failover      hands the role of the primary over to a replica
report        INFO replication and ROLE
"""
