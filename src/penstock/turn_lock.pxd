import cython


@cython.final
cdef class TurnLock:
    cdef list _token
    cdef object _queue

    cpdef void acquire(self) except *
    cpdef void release(self) except *
    cdef bint _take(self) except -1
