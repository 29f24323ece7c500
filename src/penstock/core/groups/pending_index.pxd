import cython

from penstock.core.rax.tree cimport Rax


@cython.final
cdef class PendingIndex:
    cdef readonly Rax counts

    cpdef int add(self, bytes key) except -1
    @cython.locals(count="long long")
    cpdef int remove(self, bytes key) except -1
    cpdef bint has(self, bytes key) except -1
