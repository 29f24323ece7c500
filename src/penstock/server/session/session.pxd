# What lies on the way of every command is typed; what a socket gives is called as Python.

import cython

from penstock.core.frame cimport Frame
from penstock.engine.clock cimport Instant
from penstock.engine.context cimport Context
from penstock.engine.execute cimport Engine
from penstock.engine.keyspace cimport Keyspace
from penstock.server.server cimport Server
from penstock.server.stats.tally cimport Tally
from penstock.wire.encoder cimport ReplyBuffer
from penstock.wire.parser cimport Parser

cdef long long _STOPPED
cdef long long _SILENT
cdef Py_ssize_t _SPILL_BYTES
cdef long long _SLICE_US
cdef long long _RUN_MAX
cdef long long _PAUSED
cdef long long _NEXT
cdef long long _BLOCKED
cdef long long _MONITORED


@cython.final
cdef class Session:
    cdef readonly Server server
    cdef readonly long long id
    cdef readonly object info
    cdef readonly long long active_ms
    cdef readonly Tally last
    cdef long long _untimed
    cdef long long _timed_us
    cdef public object link
    cdef public Keyspace keyspace
    cdef readonly Frame frame
    cdef readonly Parser parser
    cdef readonly ReplyBuffer output
    cdef readonly bint behind
    cdef public long long counted_bytes
    cdef public bint due
    cdef readonly Py_ssize_t mark
    cdef readonly list late
    cdef public bint slow
    cdef readonly list held
    cdef readonly long long held_bytes
    cdef public long long over_soft_since_ms
    cdef public long long state
    cdef public object waiter
    cdef public object postponed
    cdef public object transaction
    cdef public long long waiting_bytes
    cdef public object watching
    cdef readonly dict channels
    cdef readonly dict patterns

    @cython.locals(instant=Instant, started_us="long long")
    cpdef int feed(self, bytearray buffer, Py_ssize_t end) except -1
    @cython.locals(server=Server, context=Context, tally=Tally, ran=bint)
    cpdef int run(self, Frame frame) except -1
    cdef Tally _find_or_none(self, Frame frame)
    @cython.locals(tally=Tally, instant=Instant, us="long long", now_us="long long")
    cdef int _settle(self, Frame frame) except -1
    cdef int _run_data(self, Tally tally, Frame frame) except -1
    @cython.locals(ran=bint)
    cdef bint _run_checked(self, Tally tally, Frame frame) except -1
    cdef int _end_reply(self) except -1
    @cython.locals(server=Server)
    cdef bint _try(self, Tally tally, Frame frame) except -1
    cdef int _run_in_session(self, Tally tally, Frame frame) except -1
    cdef int _spill(self) except -1
    cpdef void flush(self) except *
    cpdef list take_pieces(self)
    @cython.locals(size="long long")
    cpdef void deliver(self, list pieces) except *
