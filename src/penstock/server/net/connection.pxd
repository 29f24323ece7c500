# uvloop needs no base class for a protocol, only its methods. That is why it can be a compiled class.

import cython

from penstock.server.session.command_runner cimport CommandRunner
from penstock.server.session.session cimport Session


@cython.final
cdef class Connection:
    cdef bint _waits
    cdef bint _can_wait
    cdef readonly Session session
    cdef readonly CommandRunner runner
    cdef readonly object transport
    cdef readonly object write

    cpdef object get_buffer(self, Py_ssize_t hint)
    @cython.locals(is_full=bint)
    cpdef int buffer_updated(self, Py_ssize_t count) except -1
    cpdef int resume(self) except -1
    cdef int _wait_for_turn(self) except -1
    @cython.locals(session=Session)
    cdef int _run(self) except -1
