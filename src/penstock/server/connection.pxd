# asyncio wants no base class of such a protocol, only its methods, so it can be compiled.

import cython

from penstock.core cimport memory
from penstock.server.session cimport Session

cdef Py_ssize_t _KEEP_BYTES_MIN


@cython.final
cdef class Inbox:
    cdef readonly bytearray buffer
    cdef readonly object view


@cython.final
cdef class Connection:
    cdef Inbox _inbox
    cdef bytearray _kept
    cdef Py_ssize_t _kept_size
    cdef readonly Session session
    cdef readonly object transport
    cdef readonly object write

    @cython.locals(session=Session)
    cpdef int buffer_updated(self, Py_ssize_t count) except -1
    @cython.locals(kept=bytearray)
    cpdef int go_on(self) except -1
    cdef int _feed(self, bytearray buffer, Py_ssize_t end) except -1
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t)
    cdef void _keep(self, bytearray buffer, Py_ssize_t end) except *
    cdef int _move(self, bytearray target, bytearray source, Py_ssize_t start) except -1
