import cython

from penstock.core cimport memory
from penstock.persist.rdb cimport crc64
from penstock.persist.rdb.lzf cimport Compressor

cdef Py_ssize_t _CHUNK_BYTES
cdef int _ENCODED
cdef int _LZF
cdef Py_ssize_t _INTEGER_BYTES_MAX
cdef Py_ssize_t _COMPRESSED_BYTES_MIN
cdef Py_ssize_t _SAVED_BYTES_MIN


@cython.final
cdef class RdbOutput:
    cdef object _write
    cdef Compressor _compressor
    cdef bint _checksum
    cdef bytearray _buffer
    cdef bytearray _packed
    cdef Py_ssize_t _at
    cdef unsigned long long _crc

    cpdef int flush(self) except -1
    cdef int _reserve(self, Py_ssize_t size) except -1
    cpdef int byte(self, int value) except -1
    cpdef int number(self, unsigned long long value) except -1
    cdef int _big(self, unsigned long long value, int width) except -1
    cpdef int signed(self, long long value) except -1
    cpdef int milliseconds(self, long long value) except -1
    cpdef int raw(self, bytes data) except -1
    cpdef int string(self, bytes data) except -1
    cdef bint _put_integer(self, bytes data) except -1
    @cython.locals(room=Py_ssize_t, packed=Py_ssize_t)
    cpdef int piece(self, bytearray source, Py_ssize_t start, Py_ssize_t size) except -1
    cdef int _copy(self, bytearray source, Py_ssize_t start, Py_ssize_t size) except -1
