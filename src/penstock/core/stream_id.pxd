import cython

from penstock.core cimport memory, spans

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
@cython.locals(key=bytes)
cpdef bytes parse_key(bytearray buffer, Py_ssize_t start, Py_ssize_t size)
@cython.locals(key=bytes)
cpdef StreamID parse_span(bytearray buffer, Py_ssize_t start, Py_ssize_t size, unsigned long long missing_seq)
