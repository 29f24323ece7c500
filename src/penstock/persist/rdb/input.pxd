import cython

from penstock.core cimport memory
from penstock.persist.rdb cimport crc64, lzf

cdef Py_ssize_t _CHUNK_BYTES
cdef unsigned long long _LENGTH_MAX
cdef int _PLAIN
cdef int _INT8
cdef int _INT32
cdef int _LZF


# Numbers of 64 unsigned bits are left in `value`: a method that returned them could not tell an error.
@cython.final
cdef class RdbInput:
    cdef readonly str name
    cdef readonly bytearray buffer
    cdef readonly Py_ssize_t base
    cdef readonly Py_ssize_t at
    cdef readonly Py_ssize_t end
    cdef readonly unsigned long long value
    cdef object _source
    cdef unsigned long long _crc
    cdef Py_ssize_t _crc_from

    cdef int _settle(self) except -1
    cpdef int need(self, Py_ssize_t size) except -1
    @cython.locals(kept=Py_ssize_t, fresh=bytearray, got=Py_ssize_t)
    cdef int _fill(self, Py_ssize_t size) except -1
    cpdef int byte(self) except -1
    @cython.locals(lead=int, kind=int)
    cdef int _lead(self) except -1
    @cython.locals(value="unsigned long long")
    cdef object _big(self, int width)
    cpdef int take_number(self) except -1
    @cython.locals(start=Py_ssize_t)
    cpdef Py_ssize_t length(self) except -1
    cpdef object milliseconds(self)
    cpdef bytes raw(self, Py_ssize_t size)
    @cython.locals(kind=int)
    cpdef bytes string(self)
    @cython.locals(kind=int, left=Py_ssize_t, step=Py_ssize_t)
    cpdef int skip_string(self) except -1
    @cython.locals(kind=int, size=Py_ssize_t)
    cpdef bytearray blob(self)
    cdef Py_ssize_t _size(self) except -1
    cdef bytes _integer_text(self, int kind)
    @cython.locals(size=Py_ssize_t, promised=Py_ssize_t, start=Py_ssize_t, made=bytearray)
    cdef bytearray _unpacked(self)
