# Times are signed, as in clock.pxd.

import cython

from penstock.engine.clock cimport Clock
from penstock.engine.keyspace cimport Keyspace

cdef long long _NOT_READ


@cython.final
cdef class Context:
    cdef readonly Keyspace keyspace
    cdef readonly object compat
    cdef Clock _clock
    cdef long long _now_ms
    cdef public bint retrying
    cdef readonly list touched
    cdef public Py_ssize_t watched

    cpdef void begin(self) except *
    cpdef long long now_ms(self) except *
    cpdef void touch(self, bytes key) except *
