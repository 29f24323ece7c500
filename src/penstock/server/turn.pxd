# Sessions are typed where they are used: session.pxd needs this file.

import cython


@cython.final
cdef class Turn:
    cdef object _call_soon
    cdef list _due
    cdef list _freed
    cdef bint _scheduled

    cpdef int add(self, object session) except -1
    cdef int _schedule(self) except -1
    cpdef int end(self) except -1
