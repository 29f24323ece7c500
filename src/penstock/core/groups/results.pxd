from penstock.core.stream_id cimport StreamID


cdef class PendingRow:
    cdef readonly StreamID id
    cdef readonly bytes consumer
    cdef readonly long long delivery_ms
    cdef readonly long long delivery_count
    cdef readonly bint owned


cdef class ClaimedEntry:
    cdef readonly StreamID id
    cdef readonly list fields
    cdef readonly long long idle_ms
    cdef readonly long long delivery_count


cdef class AutoClaim:
    cdef readonly StreamID cursor
    cdef readonly list claimed
    cdef readonly list deleted
