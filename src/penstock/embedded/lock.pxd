import cython

from penstock.embedded cimport thread_ident

cdef unsigned long _NOBODY


# The token is a list: popping from it is two instructions in C, and atomic in Python.
@cython.final
cdef class TurnLock:
    cdef list _token
    cdef object _queue
    cdef unsigned long _owner

    cpdef void acquire(self) except *
    cpdef void release(self) except *
    cpdef bint is_mine(self) except -1
    cdef bint _take(self) except -1
