import cython

from penstock.core cimport listpack, memory, stream_id
from penstock.core.stream_id cimport StreamID

cdef Py_ssize_t _HEADER_BYTES
cdef unsigned char _END
cdef Py_ssize_t _COUNT_UNKNOWN
cdef long long _DELETED
cdef long long _SAME_FIELDS
cdef Py_ssize_t _DIGITS_MAX
cdef unsigned int _NINE
cdef long long _FIXED_PIECES

@cython.locals(elements=_UntrustedElements)
cpdef int validate_listpack(bytearray lp) except -1
# Counts are read from signed 64-bit elements; the numbers added to them are bounded by the buffer's size.
@cython.locals(elements=_UntrustedElements, live="long long", deleted="long long", fields="long long", names_at=Py_ssize_t,
               names_end=Py_ssize_t, found="long long", found_deleted="long long", last_ms="unsigned long long",
               last_seq="unsigned long long", entry_ms="unsigned long long", entry_seq="unsigned long long",
               rising=bint, flags="long long", pieces="long long", stated="long long")
cpdef StreamID validate_node(bytearray node, unsigned long long ms, unsigned long long seq)
@cython.locals(made=_UntrustedElements)
cdef _UntrustedElements _open(bytearray lp)


@cython.final
cdef class _UntrustedElements:
    cdef bytearray lp
    cdef Py_ssize_t at
    cdef Py_ssize_t end
    cdef Py_ssize_t count

    @cython.locals(size=Py_ssize_t)
    cdef int _reset(self, bytearray lp) except -1
    cdef int refuse(self, str what) except -1
    @cython.locals(stated=Py_ssize_t)
    cdef int close(self) except -1
    @cython.locals(lp=bytearray, at=Py_ssize_t, lead="unsigned int", size=Py_ssize_t)
    cdef int skip(self, long long count) except -1
    # Not long long, which does not compile here (CONTRIBUTING.md); it has the same number of bits.
    @cython.locals(at=Py_ssize_t, lp=bytearray)
    cdef Py_ssize_t integer(self) except? -1
    @cython.locals(lp=bytearray, at=Py_ssize_t, left=Py_ssize_t, lead="unsigned int", size=Py_ssize_t)
    cdef int step(self) except -1
    @cython.locals(lp=bytearray, at=Py_ssize_t, size=Py_ssize_t, width=Py_ssize_t, continued="unsigned int",
                   place=Py_ssize_t, shortest=bint)
    cdef int step_wide(self, unsigned int lead, Py_ssize_t left) except -1
    @cython.locals(lp=bytearray, end=Py_ssize_t, digits=Py_ssize_t, element=bytearray)
    cdef int check_string(self, Py_ssize_t at, Py_ssize_t size) except -1
    @cython.locals(lp=bytearray, fields="long long", left="long long", same=bint, at=Py_ssize_t, size=Py_ssize_t)
    cdef Py_ssize_t own_fields(self, long long header_fields, Py_ssize_t names_at, Py_ssize_t names_end) except -1
