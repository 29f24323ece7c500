import cython

from penstock.core.stream_id cimport StreamID


@cython.final
cdef class IdempotencySettings:
    cdef readonly long long duration_s
    cdef readonly long long size_max

    @cython.locals(before_ms="long long")
    cpdef bint has_expired(self, StreamID entry_id, long long now_ms) except -1


@cython.final
cdef class Idempotency:
    cdef readonly object producers
    cdef public long long added
    cdef public long long duplicates

    @cython.locals(entry_id=StreamID)
    cpdef StreamID find_or_none(self, bytes producer, bytes name, IdempotencySettings settings, long long now_ms)
    cpdef int record(self, bytes producer, bytes name, StreamID entry_id, IdempotencySettings settings, long long now_ms) except -1
    cpdef int count_duplicate(self) except -1
    cdef int _forget_idle_producers(self, IdempotencySettings settings, long long now_ms) except -1
    cdef bint _forget_names(self, bytes producer, IdempotencySettings settings, long long now_ms) except -1
    cpdef int forget_expired(self, IdempotencySettings settings, long long now_ms) except -1
    cpdef int clear(self) except -1
