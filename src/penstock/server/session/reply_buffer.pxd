# Used at least once per turn and client.

import cython

from penstock.core cimport memory
from penstock.server.net cimport direct
from penstock.wire.encoder cimport Encoder

cdef Py_ssize_t _SPILL_BYTES


@cython.final
cdef class ReplyBuffer:
    cdef readonly Encoder output
    cdef readonly list aside
    cdef readonly long long aside_bytes
    cdef readonly long long taken_bytes
    cdef readonly Py_ssize_t mark
    cdef list _late

    cpdef int begin_reply(self) except -1
    cpdef int end_reply(self) except -1
    cpdef int remove_reply(self) except -1
    cpdef int push(self, object push, bint is_silent) except -1
    cpdef bint is_empty(self) except -1
    @cython.locals(size=Py_ssize_t)
    cpdef bint spill(self) except -1
    cpdef list take(self)
    @cython.locals(output=Encoder, size=Py_ssize_t, sent=Py_ssize_t)
    cpdef Py_ssize_t send(self, int fd) except -1
    @cython.locals(size=Py_ssize_t)
    cpdef Py_ssize_t give_out(self, list pieces) except -1
