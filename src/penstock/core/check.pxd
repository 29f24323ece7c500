import cython

from penstock.core cimport listpack

cdef Py_ssize_t _KEY_BYTES
cdef Py_ssize_t _FIXED_PIECES
cdef Py_ssize_t _COUNTER_BYTES_SAVED_MAX

# Only the walk over every element has C types. The rest is not worth it.
@cython.locals(total=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, count=Py_ssize_t, packed=bytearray)
cpdef void check_listpack(bytearray lp, str place=*) except *
@cython.locals(content=bytes, element=bytearray, size=Py_ssize_t)
cdef Py_ssize_t _check_element(bytearray lp, Py_ssize_t at, str place) except -1


cdef class _Entry:
    cdef readonly Py_ssize_t at
    cdef readonly object id
    cdef readonly bint deleted
    cdef readonly Py_ssize_t raw_bytes


cdef class _Elements:
    cdef readonly str place
    cdef readonly bytearray node
    cdef readonly Py_ssize_t at

    cpdef long long integer(self, str number, str what) except? -1
    @cython.locals(value=bytes)
    cpdef bytes string(self, str number, str what)
