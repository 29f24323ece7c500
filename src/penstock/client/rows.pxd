import cython

from penstock.client.columns cimport Column, Pairs
from penstock.core cimport listpack, memory

cdef Py_ssize_t _AS_INTEGER
cdef int _ENTRY_ID, _ENTRY_TIME, _STREAM, _STRING
cdef Py_ssize_t _TEXT_BYTES_MAX
cdef Py_ssize_t _ID_TEXT_BYTES_MAX
cdef Py_ssize_t _ESCAPE_FACTOR
cdef Py_ssize_t _SPAN_BYTES
cdef Py_ssize_t _NOWHERE


@cython.final
cdef class FieldNames:
    cdef readonly list names
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size
    cdef list places
    cdef bytearray shadowed
    cdef list texts


@cython.final
cdef class Rows:
    cdef list _columns
    cdef list _wanted
    cdef public Pairs fields
    cdef public bint keep_all
    cdef public Pairs corrupt
    cdef readonly bint fail_on_error
    cdef Py_ssize_t _rows_max
    cdef Py_ssize_t _bytes_max
    cdef readonly bytes stream
    cdef bytes _stream_text
    cdef Py_ssize_t _overhead
    cdef Py_ssize_t _bytes
    cdef dict _known
    cdef dict _failures
    cdef readonly bytearray spans
    cdef public Py_ssize_t step
    cdef public Py_ssize_t values_failed
    cdef readonly Py_ssize_t count

    cpdef int begin(self) except -1
    @cython.locals(known=FieldNames)
    cpdef FieldNames names_of(self, list names)
    @cython.locals(missing=Py_ssize_t)
    cpdef int reserve_spans(self, Py_ssize_t count) except -1
    @cython.locals(size=Py_ssize_t)
    cpdef bint has_room(self, Py_ssize_t values_bytes, FieldNames names) except -1
    @cython.locals(row=Py_ssize_t, columns=list, places=list, spans=bytearray, number=Py_ssize_t, count=Py_ssize_t,
                   column=Column, kind=int, place=Py_ssize_t, step=Py_ssize_t, span=Py_ssize_t)
    cpdef int add(self, unsigned long long ms, unsigned long long seq, bytearray buffer, FieldNames names) except -1
    @cython.locals(pairs=Pairs, name_column=Column, value_column=Column, spans=bytearray, known=list,
                   shadowed=bytearray, number=Py_ssize_t, place=Py_ssize_t,
                   step=Py_ssize_t, span=Py_ssize_t)
    cdef int _add_fields(self, Py_ssize_t row, bytearray buffer, FieldNames names) except -1
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t, span=Py_ssize_t)
    cdef int _note_failure(self, bytearray buffer, FieldNames names, Py_ssize_t place) except -1
    @cython.locals(pairs=Pairs)
    cdef int _settle_failures(self, Py_ssize_t row, unsigned long long ms, unsigned long long seq) except -1
