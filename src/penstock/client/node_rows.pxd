import cython

from penstock.client.rows cimport FieldNames, Rows
from penstock.core cimport listpack, memory, stream_id
from penstock.core.stream_id cimport StreamID

cdef Py_ssize_t _HEADER_BYTES
cdef unsigned char _END
cdef Py_ssize_t _AS_INTEGER
cdef long long _DELETED
cdef long long _SAME_FIELDS
cdef long long _FIXED_PIECES
cdef Py_ssize_t _INTEGER_TEXT_BYTES


# Positions are signed: what a damaged length leads to is found by a comparison, not by wrapping around.
@cython.final
cdef class NodeRows:
    cdef Rows _rows
    cdef bytearray _buffer
    cdef Py_ssize_t _start
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef unsigned long long _master_ms
    cdef unsigned long long _master_seq
    cdef unsigned long long _start_ms
    cdef unsigned long long _start_seq
    cdef unsigned long long _last_ms
    cdef unsigned long long _last_seq
    cdef long long _live
    cdef long long _deleted
    cdef long long _found
    cdef FieldNames _header_names
    cdef FieldNames _names
    cdef Py_ssize_t _values_bytes
    cdef readonly bint is_open

    cpdef int open(self, bytearray buffer, Py_ssize_t start, Py_ssize_t size, StreamID master) except -1
    @cython.locals(fields=Py_ssize_t, at=Py_ssize_t)
    cdef int _open_header(self) except -1
    cdef int _found_deleted_too(self, long long deleted) except -1
    cpdef bint run(self) except -1
    @cython.locals(rows=Rows, buffer=bytearray, entry_at=Py_ssize_t, flags="long long", ms="unsigned long long",
                   seq="unsigned long long", names=FieldNames, pieces="long long")
    cdef bint _run(self) except -1
    @cython.locals(rows=Rows, buffer=bytearray, end=Py_ssize_t, at=Py_ssize_t, spans=bytearray, total=Py_ssize_t,
                   number=Py_ssize_t, lead=Py_ssize_t)
    cdef int _same_values(self, Py_ssize_t count) except -1
    @cython.locals(rows=Rows, buffer=bytearray, fields=Py_ssize_t, known=FieldNames, expected=list, same=bint,
                   at=Py_ssize_t, total=Py_ssize_t, number=Py_ssize_t, name_at=Py_ssize_t)
    cdef FieldNames _own_values(self)
    cdef list _own_names(self, Py_ssize_t at, Py_ssize_t fields)
    @cython.locals(buffer=bytearray, at=Py_ssize_t, size=Py_ssize_t)
    cdef Py_ssize_t _note_long(self, Py_ssize_t number) except -1
    # Not long long, which does not compile here (CONTRIBUTING.md); it has as many bits.
    @cython.locals(at=Py_ssize_t, lead=Py_ssize_t)
    cdef Py_ssize_t _integer(self) except? -1
    @cython.locals(at=Py_ssize_t)
    cdef int _step(self) except -1
    cdef int _refuse(self, str what) except -1


@cython.locals(lead=Py_ssize_t)
cdef bint _is_element(bytearray buffer, Py_ssize_t at, bytes name) except -1
