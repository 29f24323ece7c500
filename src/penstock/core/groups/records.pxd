import cython

from penstock.core cimport memory
from penstock.core.rax.tree cimport Rax

cdef long long _NEVER_MS
cdef Py_ssize_t _TIME_BYTES


# Numbers only, so that the type needs no garbage collection: 40 bytes per object.
@cython.final
cdef class Pending:
    cdef public long long delivery_ms
    cdef public long long delivery_count
    cdef public int consumer_number


@cython.locals(made=Pending)
cpdef Pending made_pending(int consumer_number, long long delivery_ms, long long delivery_count)


cpdef bytes idle_key(Pending record, bytes key)


@cython.final
cdef class Consumer:
    cdef readonly bytes name
    cdef readonly int number
    cdef public long long seen_ms
    cdef public long long active_ms
    cdef readonly Rax pending


cdef class ClaimOptions:
    cdef public long long idle_ms_min
    cdef public long long delivery_ms
    cdef public long long delivery_count
    cdef public bint force
    cdef public bint just_id
