# What lies on the way of every command is typed; what a socket gives is called as Python.

import cython

from penstock.core.frame cimport Frame
from penstock.engine.clock cimport Instant
from penstock.engine.context cimport Context
from penstock.engine.execute cimport Engine
from penstock.engine.keyspace cimport Keyspace
from penstock.server.server cimport Server
from penstock.server.tally cimport Tally
from penstock.wire.encoder cimport Output
from penstock.wire.parser cimport Parser

cdef long long _STOPPED
cdef long long _SILENT
cdef Py_ssize_t _SPILL_BYTES


@cython.final
cdef class Session:
    cdef readonly Server server
    cdef readonly long long id
    cdef readonly object info
    cdef readonly long long active_ms
    cdef readonly Tally last
    cdef public object link
    cdef public Keyspace keyspace
    cdef readonly Frame frame
    cdef readonly Parser parser
    cdef readonly Output output
    cdef public bint due
    cdef readonly Py_ssize_t mark
    cdef readonly list late
    cdef public bint slow
    cdef readonly list held
    cdef readonly long long held_bytes
    cdef readonly long long over_soft_since_ms
    cdef public long long state
    cdef public object waiter
    cdef public object postponed
    cdef public object transaction
    cdef public object watching
    cdef readonly dict channels
    cdef readonly dict patterns

    @cython.locals(instant=Instant)
    cpdef void feed(self, bytearray buffer, Py_ssize_t end) except *
    @cython.locals(server=Server, context=Context, tally=Tally, started_us="long long", us="long long")
    cpdef void run(self, Frame frame) except *
    cdef void _run_data(self, Tally tally, Frame frame) except *
    @cython.locals(ran=bint)
    cdef bint _run_checked(self, Tally tally, Frame frame) except -1
    cdef void _end_reply(self) except *
    @cython.locals(server=Server)
    cdef bint _try(self, Tally tally, Frame frame) except -1
    cdef void _run_in_session(self, Tally tally, Frame frame) except *
    cdef void _spill(self) except *
    cpdef void flush(self) except *
