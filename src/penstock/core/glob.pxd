# Positions are signed: a search that finds nothing returns -1. Sets, states and rows of tables are Python
# numbers, because they have as many bits as a stretch has tokens.

import cython

cdef Py_ssize_t _SHORT_TOKENS
cdef Py_ssize_t _FEW_PLACES
cdef int _STAR, _ANY, _OPEN, _CLOSE, _ESCAPE, _NOT, _DASH
cdef int _PLAIN, _EVERY, _SET


@cython.final
cdef class Stretch:
    cdef readonly bytearray tokens
    cdef readonly bytearray kinds
    cdef readonly dict sets
    cdef readonly Py_ssize_t size
    cdef readonly bint is_plain

    cdef int add(self, int kind, int token) except -1
    cdef int add_set(self, members) except -1
    @cython.locals(index=Py_ssize_t, kind="unsigned char")
    cdef bint fits(self, bytes name, Py_ssize_t place, Py_ssize_t first) except -1
    @cython.locals(last=Py_ssize_t)
    cdef Py_ssize_t find(self, bytes name, Py_ssize_t start, Py_ssize_t until) except -2
    @cython.locals(searched=Py_ssize_t, table=list, state=object, found=object, place=Py_ssize_t,
                   last=Py_ssize_t)
    cdef Py_ssize_t _find_in_parallel(self, bytes name, Py_ssize_t start, Py_ssize_t until) except -2
    @cython.locals(width=Py_ssize_t, every=bytearray, rows=dict, index=Py_ssize_t, place=Py_ssize_t,
                   bit="unsigned char", kind="unsigned char")
    cdef list _table(self, Py_ssize_t searched)


@cython.final
cdef class Glob:
    cdef readonly bytes pattern
    cdef Stretch _head
    cdef Stretch _tail
    cdef list _inner
    cdef Py_ssize_t _size_min

    @cython.locals(size=Py_ssize_t, head=Stretch, tail=Stretch, until=Py_ssize_t)
    cpdef bint matches(self, bytes name) except -1
    @cython.locals(stretch=Stretch)
    cdef bint _inner_fit(self, bytes name, Py_ssize_t place, Py_ssize_t until) except -1


@cython.locals(at=Py_ssize_t, token="unsigned char", stretch=Stretch)
cdef list _parse(bytes pattern, bint ignore_case)
@cython.locals(size=Py_ssize_t, negated=bint)
cdef Py_ssize_t _parse_set(bytes pattern, Py_ssize_t at, bint ignore_case, Stretch stretch) except -1
