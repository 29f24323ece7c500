# Times and counts are signed, as in clock.pxd.

import cython

from penstock.engine.clock cimport Instant
from penstock.engine.effects cimport EffectSink
from penstock.engine.keyspace cimport Keyspace


@cython.final
cdef class Context:
    cdef readonly object channels
    cdef public object compat
    cdef readonly list databases
    cdef public object dice
    cdef public long long dirty
    cdef public EffectSink effects
    cdef public long long event_kinds
    cdef readonly object garbage
    cdef readonly Instant instant
    cdef public Keyspace keyspace
    cdef public bint may_block
    cdef public bint recorded
    cdef public bint replaying
    cdef public bint retrying
    cdef public list touched
    cdef readonly object waiters
    cdef public Py_ssize_t waiting
    cdef public Py_ssize_t watching

    cpdef long long now_ms(self) except *
    cpdef void record(self, list words) except *
    cpdef int changed(self, bytes key, long long kind, bytes event) except -1
    cpdef int created(self, Keyspace keyspace, bytes key) except -1
    cpdef int missed(self, bytes key) except -1
    cpdef int event(self, long long kind, bytes event, bytes key) except -1
    cpdef int touch(self, bytes key) except -1
