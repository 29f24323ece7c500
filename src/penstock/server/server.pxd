# Typed as far as the way of a command leads through it.

import cython

from penstock.engine.execute cimport Engine
from penstock.server.stats.tally cimport Tallies
from penstock.server.turn cimport Turn
from penstock.wire.parser cimport WireLimits


cdef class Server:
    cdef readonly Engine engine
    cdef readonly object loop
    cdef readonly Turn turn
    cdef readonly object backlog
    cdef readonly Tallies tallies
    cdef readonly object slow_log
    cdef readonly object facts
    cdef public object config
    cdef public object door
    cdef readonly object monitors
    cdef readonly object pause
    cdef readonly WireLimits wire_limits
    cdef readonly object output_limits
    cdef readonly dict sessions
    cdef readonly object strangers
    cdef readonly object client_memory
    cdef public long long next_id
    cdef public long long state
    cdef public long long slow_us
    cdef public object password
    cdef public long long query_bytes_max
    cdef public object on_broken
    cdef readonly dict errors
    cdef public long long bytes_in
    cdef public long long bytes_out
