# Sessions are typed where they are used: session.pxd needs this file.

import cython


@cython.final
cdef class Turn:
    cdef object _call_soon
    cdef list _due
    cdef list _freed
    cdef bint _scheduled

    cpdef void add(self, object session) except *
    cdef void _schedule(self) except *
    cpdef void end(self) except *
