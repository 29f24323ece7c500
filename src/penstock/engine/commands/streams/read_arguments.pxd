# Positions in a frame are Py_ssize_t, as there; counts and times come from clients and have 64 bits.

import cython

from penstock.core cimport spans
from penstock.core.frame cimport Frame
from penstock.engine.arguments cimport int_at
from penstock.engine.context cimport Context

cdef long long _NEVER
cdef long long _NO_LIMIT
cdef unsigned long long _BLOCK
cdef unsigned long long _COUNT
cdef unsigned long long _STREAMS
cdef unsigned long long _GROUP
cdef unsigned long long _NOACK


cdef class ReadBudget  # the arguments hold one


@cython.locals(made=ReadArguments)
cpdef ReadArguments read_arguments(Context context, Frame frame, bint grouped)


@cython.final
cdef class ReadArguments:
    cdef readonly bint grouped
    cdef readonly long long timeout_ms
    cdef readonly long long count
    cdef readonly long long max_count
    cdef readonly long long max_size
    cdef public long long claim_idle_ms
    cdef readonly ReadBudget budget
    cdef readonly bint ack
    cdef readonly Frame frame
    cdef readonly Py_ssize_t group_at
    cdef readonly Py_ssize_t streams_at
    cdef readonly Py_ssize_t streams

    cdef int _reset(self, bint grouped) except -1
    @cython.locals(at=Py_ssize_t, more=Py_ssize_t, word="unsigned long long")
    cpdef int read(self, Context context, Frame frame) except -1
    cpdef bytes group_name(self)
    cpdef bytes consumer_name(self)
    cdef bint _read_new_option(self, Context context, Frame frame, Py_ssize_t at) except -1
    cdef int _read_timeout(self, Context context, Frame frame, Py_ssize_t at) except -1
    @cython.locals(words=Py_ssize_t)
    cdef int _find_streams(self, Context context, Frame frame, Py_ssize_t at) except -1


cdef class ReadBudget:
    cdef readonly long long entries_left
    cdef readonly long long bytes_left
