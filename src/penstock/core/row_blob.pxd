# Sizes are signed: the bytes left are compared with a blob's claims, which reach 2**32 - 1.

import cython

from penstock.core.frame cimport Frame

cdef int _FIXARRAY, _FIXARRAY_END
cdef int _ARRAY16, _ARRAY32
cdef int _FIXSTR, _FIXSTR_END
cdef int _STR8, _STR16, _STR32
cdef int _BIN8, _BIN16, _BIN32


@cython.final
cdef class RowBlob:
    cdef bytearray _buffer
    cdef Py_ssize_t _start
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef Py_ssize_t _left

    cpdef int open(self, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    @cython.locals(texts=Py_ssize_t, size=Py_ssize_t)
    cpdef bint next(self, Frame frame) except -1
    @cython.locals(texts=Py_ssize_t, size=Py_ssize_t)
    cpdef bint skip(self) except -1
    # -1 is a valid result.
    @cython.locals(texts=Py_ssize_t, place=Py_ssize_t)
    cdef Py_ssize_t _row(self) except -2
    @cython.locals(lead=int)
    cdef Py_ssize_t _array(self) except -1
    @cython.locals(lead=int, size=Py_ssize_t)
    cdef Py_ssize_t _text(self) except -1
    @cython.locals(number=Py_ssize_t)
    cdef Py_ssize_t _number(self, int width) except -1
    cdef inline int _byte(self) except -1
