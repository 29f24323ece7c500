import cython

from penstock.core cimport memory

cdef int _STAR, _DOLLAR, _MINUS, _ZERO, _NINE, _CR, _LF
cdef Py_ssize_t _DIGITS_MAX
cdef Py_ssize_t _LINE_BYTES_MAX
cdef int _UNDERSCORE


# Sizes are signed and 64 bits wide; 18 digits and what is added to them cannot overflow.
@cython.final
cdef class Inbox:
    cdef readonly bytearray buffer
    cdef public Py_ssize_t at
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t number
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t wanted

    cpdef bint received(self, Py_ssize_t count) except -1
    @cython.locals(short=Py_ssize_t)
    cpdef bint head(self, int kind) except -1
    @cython.locals(buffer=bytearray, at=Py_ssize_t, line_end=Py_ssize_t, negative=bint, digits=Py_ssize_t,
                   number=Py_ssize_t, byte=int)
    cdef bint _long_head(self, int kind) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef bint bulk(self) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef bint bulk_or_null(self) except -1
    @cython.locals(start=Py_ssize_t, behind=Py_ssize_t)
    cdef bint _content(self, Py_ssize_t line_at) except -1
    cpdef int refuse(self, str what) except -1
