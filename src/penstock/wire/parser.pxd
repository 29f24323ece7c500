# Sizes are signed 64-bit numbers: a client's number is compared before it is used.

import cython

from penstock.core cimport memory, spans
from penstock.core.frame cimport Frame

cdef Py_ssize_t _INLINE_BYTES_MAX
cdef Py_ssize_t _ARGUMENTS_MAX
cdef Py_ssize_t _STRANGER_ARGUMENTS_MAX
cdef Py_ssize_t _STRANGER_BULK_BYTES_MAX
cdef Py_ssize_t _STRANGER_COMMAND_BYTES_MAX
cdef Py_ssize_t _NUMBER_DIGITS_MAX
cdef Py_ssize_t _NOT_A_NUMBER
cdef Py_ssize_t _COUNT_BITS
cdef Py_ssize_t _COUNT_MASK
cdef unsigned char _STAR
cdef unsigned char _DOLLAR
cdef unsigned char _MINUS
cdef unsigned char _ZERO
cdef unsigned char _CR
cdef unsigned char _LF


@cython.final
cdef class WireLimits:
    cdef public Py_ssize_t bulk_bytes_max


@cython.final
cdef class Parser:
    cdef readonly Py_ssize_t at
    cdef readonly Py_ssize_t bulk
    cdef readonly Py_ssize_t left
    cdef readonly WireLimits limits
    cdef readonly Py_ssize_t start
    cdef public bint stranger

    @cython.locals(at=Py_ssize_t, left=Py_ssize_t, size=Py_ssize_t, line_end=Py_ssize_t,
                   noted=Py_ssize_t, last=Py_ssize_t)
    cpdef bint next(self, Frame frame, bytearray buffer, Py_ssize_t end) except -1
    cpdef void rest_moved(self, Py_ssize_t back) except *
    @cython.locals(at=Py_ssize_t, count=Py_ssize_t, line_end=Py_ssize_t)
    cdef bint _begin(self, Frame frame, bytearray buffer, Py_ssize_t end) except -1
    @cython.locals(found=Py_ssize_t)
    cdef Py_ssize_t _line_end(self, bytearray buffer, Py_ssize_t at, Py_ssize_t end, str refusal) except? -1
    cdef Py_ssize_t _line_bytes_max(self) except -1
    @cython.locals(size=Py_ssize_t)
    cdef Py_ssize_t _bulk_size(self, bytearray buffer, Py_ssize_t at, Py_ssize_t line_end) except -1
    @cython.locals(line_end=Py_ssize_t)
    cdef Py_ssize_t _inline(self, Frame frame, bytearray buffer, Py_ssize_t end) except? -1


@cython.locals(negative=bint, count=Py_ssize_t, value=Py_ssize_t, digit="unsigned char")
cdef Py_ssize_t _number(bytearray buffer, Py_ssize_t at, Py_ssize_t end) except? -1
