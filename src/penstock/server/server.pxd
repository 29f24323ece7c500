# Typed are the attributes that every command uses.

import cython

from penstock.engine.execute cimport Engine
from penstock.server.stats.tally cimport Tallies
from penstock.server.turn cimport Turn
from penstock.server.net.receiver cimport Inbox
from penstock.wire.parser cimport WireLimits


cdef class Server:
    cdef readonly Engine engine
    cdef readonly object loop
    cdef readonly Turn turn
    cdef readonly object backlog
    cdef readonly Inbox inbox
    cdef readonly Tallies tallies
    cdef readonly object slow_log
    cdef readonly object startup
    cdef public object config
    cdef public object door
    cdef public object lifecycle
    cdef public object durability
    cdef public object tls
    cdef public object loading
    cdef readonly object monitors
    cdef readonly object pause
    cdef readonly object rates
    cdef readonly object disk_failure
    cdef readonly object replication
    cdef readonly WireLimits wire_limits
    cdef readonly object output_limits
    cdef readonly dict sessions
    cdef readonly object strangers
    cdef readonly object client_memory
    cdef readonly object users
    cdef public long long next_id
    cdef public long long state
    cdef public long long slow_us
    cdef public long long query_bytes_max
    cdef public long long hz
    cdef public long long max_clients
    cdef public object max_memory  # up to 2**64 - 1
    cdef public object debug_allowed
    cdef public bint active_expire
    cdef public bint awaits_replicas
    cdef readonly dict errors
    cdef public long long bytes_in
    cdef public long long bytes_out
