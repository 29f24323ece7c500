import cython

from penstock.core.groups.pending_list cimport PendingList

cdef long long _NEVER_MS


@cython.final
cdef class Consumer:
    cdef readonly bytes name
    cdef readonly int number
    cdef public long long seen_ms
    cdef public long long active_ms
    cdef readonly PendingList pending
