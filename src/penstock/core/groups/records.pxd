import cython

from penstock.core cimport memory, stream_id
from penstock.core.stream_id cimport StreamID

cdef Py_ssize_t _TIME_BYTES


# Numbers only, so that the type needs no garbage collection: 56 bytes per object.
@cython.final
cdef class Pending:
    cdef public unsigned long long ms
    cdef public unsigned long long seq
    cdef public long long delivery_ms
    cdef public long long delivery_count
    cdef public int consumer_number

    cpdef bytes key(self)
    cpdef StreamID entry_id(self)


@cython.locals(made=Pending)
cpdef Pending made_pending(unsigned long long ms, unsigned long long seq, int consumer_number, long long delivery_ms,
                           long long delivery_count)


cpdef bytes idle_key(Pending record)


cdef class ClaimOptions:
    cdef public long long idle_ms_min
    cdef public long long delivery_ms
    cdef public long long delivery_count
    cdef public bint force
    cdef public bint just_id
