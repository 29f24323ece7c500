import cython

from penstock.core cimport memory, stream_id
from penstock.core.groups.records cimport Pending

cdef Py_ssize_t _BLOCK_MAX
cdef Py_ssize_t _SMALL


@cython.final
cdef class PendingList:
    cdef list _blocks
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t version

    cpdef Pending find(self, bytes key)
    @cython.locals(at=Py_ssize_t, index=Py_ssize_t, size=Py_ssize_t, half=Py_ssize_t, block=list, other=Pending)
    cpdef bint add(self, Pending record) except -1
    cpdef Pending pop(self, bytes key)
    cpdef int discard(self, Pending record) except -1
    @cython.locals(block=list)
    cpdef Pending edge_or_none(self, bint last)
    cpdef PendingWalk walk(self, unsigned long long ms=*, unsigned long long seq=*)
    cpdef list take_blocks(self)
    cpdef list blocks(self)
    @cython.locals(index=Py_ssize_t, block=list, record=Pending)
    cdef Pending _find(self, unsigned long long ms, unsigned long long seq)
    @cython.locals(at=Py_ssize_t, index=Py_ssize_t, block=list, record=Pending)
    cdef Pending _pop(self, unsigned long long ms, unsigned long long seq)
    @cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
    cdef Py_ssize_t _block_of(self, unsigned long long ms, unsigned long long seq) except -1
    cdef int _join(self, Py_ssize_t at) except -1
    @cython.locals(block=list, behind=list)
    cdef int _join_with_next(self, Py_ssize_t at) except -1
    @cython.locals(block=list, half=Py_ssize_t)
    cdef int _split(self, Py_ssize_t at) except -1


@cython.final
cdef class PendingWalk:
    cdef readonly Pending record
    cdef PendingList _records
    cdef unsigned long long _ms
    cdef unsigned long long _seq
    cdef bint _began
    cdef Py_ssize_t _version
    cdef Py_ssize_t _at
    cdef Py_ssize_t _index

    @cython.locals(blocks=list, block=list, record=Pending)
    cpdef bint next(self) except -1
    @cython.locals(records=PendingList, block=list, record=Pending)
    cdef int _find_place(self) except -1


@cython.locals(first=Pending)
cdef bint _is_at_or_below(list block, unsigned long long ms, unsigned long long seq) except -1
@cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t, record=Pending)
cdef Py_ssize_t _place(list block, unsigned long long ms, unsigned long long seq) except -1
