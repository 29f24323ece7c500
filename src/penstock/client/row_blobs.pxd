# Rows, places and sizes are Py_ssize_t: sums of 32-bit sizes are compared before anything is written.

import cython

from penstock.core cimport memory

cdef Py_ssize_t _HEAD_BYTES
cdef Py_ssize_t _FIRST_BYTES
cdef int _ARRAY32
cdef int _ARRAY16
cdef int _FIXARRAY
cdef int _FIXSTR
cdef int _STR8, _STR16, _STR32


@cython.final
cdef class TextColumn:
    cdef readonly bytes name
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t size
    cdef bytearray _validity
    cdef bytearray _offsets
    cdef bytearray _data
    cdef Py_ssize_t _first
    cdef bint _has_nulls

    cpdef bint seek(self, Py_ssize_t row) except -1


@cython.final
cdef class PairColumn:
    cdef readonly TextColumn names
    cdef readonly TextColumn values
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t end
    cdef bytearray _validity
    cdef bytearray _offsets
    cdef Py_ssize_t _first
    cdef bint _has_nulls

    cpdef int seek(self, Py_ssize_t row) except -1


@cython.final
cdef class RowBlobs:
    cdef readonly long long rows
    cdef bytearray _buffer
    cdef Py_ssize_t _bytes_max
    cdef Py_ssize_t _fields_max
    cdef Py_ssize_t _size
    cdef Py_ssize_t _rows
    cdef list _full

    @cython.locals(row=Py_ssize_t, fields=Py_ssize_t, room=Py_ssize_t, missing=Py_ssize_t, column=TextColumn)
    cpdef int add(self, list columns, PairColumn pairs, Py_ssize_t start, Py_ssize_t until) except -1
    cpdef list take(self)
    cpdef int close(self) except -1
    # A pair of C numbers needs no tuple object.
    @cython.locals(fields=Py_ssize_t, room=Py_ssize_t, column=TextColumn, at=Py_ssize_t)
    cdef (Py_ssize_t, Py_ssize_t) _measure(self, list columns, PairColumn pairs, Py_ssize_t row) except *
    @cython.locals(names=TextColumn, values=TextColumn, at=Py_ssize_t)
    cdef int _put_pairs(self, PairColumn pairs) except -1
    cdef int _put_array(self, Py_ssize_t count) except -1
    cdef int _put_name(self, bytes name) except -1
    cdef int _put_text(self, bytearray data, Py_ssize_t start, Py_ssize_t size) except -1
    @cython.locals(at=Py_ssize_t)
    cdef int _put_text_head(self, Py_ssize_t size) except -1
    cdef int _put_number(self, Py_ssize_t at, int width, Py_ssize_t number) except -1
