# Sessions are objects here, because session.pxd cimports this file. The log is used once per turn.

import cython


@cython.final
cdef class Turn:
    cdef object _call_soon
    cdef list _due
    cdef list _freed
    cdef object _held
    cdef object _shared
    cdef bint _scheduled
    cdef public object commit
    cdef public object feed
    cdef public object on_failure
    cdef public object replicas

    cpdef int add(self, object session) except -1
    cpdef int note_effects(self) except -1
    cdef int _schedule(self) except -1
    cpdef void end(self) except *
