import cython

from penstock.core cimport memory
from penstock.persist.rdb cimport lzf_bytes

cdef Py_ssize_t _RATIO_MAX
cdef Py_ssize_t _LITERALS_MAX
cdef Py_ssize_t _DISTANCE_MAX
cdef Py_ssize_t _MATCH_MAX
cdef Py_ssize_t _HASH_SHIFT
cdef unsigned long long _HASH_FACTOR
cdef unsigned long long _MASK32
cdef Py_ssize_t _BASE_MAX

# Signed: a difference that should not be negative must compare as negative.
@cython.locals(target=bytearray, at=Py_ssize_t, end=Py_ssize_t, out=Py_ssize_t, control=Py_ssize_t,
               length=Py_ssize_t, back=Py_ssize_t)
cpdef bytearray decompress(bytearray source, Py_ssize_t start, Py_ssize_t size, Py_ssize_t promised)


@cython.final
cdef class Compressor:
    cdef bytearray _table
    cdef Py_ssize_t _base

    @cython.locals(out=Py_ssize_t)
    cpdef Py_ssize_t compress(self, bytearray source, Py_ssize_t start, Py_ssize_t size, bytearray target, Py_ssize_t room) except -1
    @cython.locals(table=bytearray, base=Py_ssize_t, shift=Py_ssize_t, end=Py_ssize_t,
                   at=Py_ssize_t, pending=Py_ssize_t, out=Py_ssize_t, word="unsigned long long",
                   slot=Py_ssize_t, seen=Py_ssize_t, place=Py_ssize_t, back=Py_ssize_t, length=Py_ssize_t, most=Py_ssize_t)
    cdef Py_ssize_t _compress(self, bytearray source, Py_ssize_t start, Py_ssize_t size, bytearray target, Py_ssize_t room) except -1


cdef Py_ssize_t _literal_bytes(Py_ssize_t count) noexcept
@cython.locals(run=Py_ssize_t)
cdef Py_ssize_t _put_literals(bytearray source, Py_ssize_t at, Py_ssize_t until, bytearray target, Py_ssize_t out) except -1
cdef Py_ssize_t _put_match(bytearray target, Py_ssize_t out, Py_ssize_t back, Py_ssize_t length) except -1
