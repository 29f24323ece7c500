import cython

from penstock.core cimport memory

# Unsigned: otherwise ids above 2**63 would sort before all others.
cdef unsigned long long _MAX64
cdef Py_ssize_t _TEXT_BYTES_MAX
cdef bytes _BLANKS


@cython.final
cdef class StreamID:
    cdef readonly unsigned long long ms
    cdef readonly unsigned long long seq

    cpdef StreamID next(self)
    cpdef StreamID previous(self)


cpdef int compare(unsigned long long left_ms, unsigned long long left_seq,
                  unsigned long long right_ms, unsigned long long right_seq) noexcept
@cython.locals(made=StreamID)
cpdef StreamID make(unsigned long long ms, unsigned long long seq)
cpdef StreamID from_key(bytes key)
cpdef StreamID parse(bytes text, unsigned long long missing_seq=*)
# 19 digits never overflow 64 bits; a twentieth takes the slow path.
@cython.locals(ms="unsigned long long", seq="unsigned long long", at=Py_ssize_t, end=Py_ssize_t, seq_start=Py_ssize_t)
cpdef StreamID parse_span(bytearray buffer, Py_ssize_t start, Py_ssize_t size, unsigned long long missing_seq)
