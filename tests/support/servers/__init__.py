"""Servers and clients, with and without sockets.

connections       a server without sockets: real sessions, a manual loop and clock
durable_bench     the same with a log, on a disk that fails on request
power_cycle       the same with a log, on a machine that loses power
recorded_session  a recorded session: replies, log bytes, RDB bytes
penstock_server   a running penstock
programs          the versions of Redis and Valkey that tests compare with
redis_server      a running Redis or Valkey
durable_redis     a redis-server that is killed and started again
redis_cluster     a Redis Cluster of three nodes
hostile_server    a server that sends the same bytes to every client
raw_redis         a connection that returns replies unchanged
answers           sends many commands to Redis at once
exchange          penstock and Redis take turns on one data directory
dashboard         a running `penstock ui`, and Chromium
loops             runs coroutines in a thread without an event loop
"""
