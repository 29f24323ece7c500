# What a runner holds is typed, so that a call of the engine from here is a C call.

from penstock.core.frame cimport Frame
from penstock.engine.execute cimport Engine
from penstock.turn_lock cimport TurnLock

cdef long long _WRITE


cdef class Runner:
    cdef TurnLock _turn
    cdef Engine _engine
    cdef Frame _frame
    cdef object _keeper
    cdef bint _decode
    cdef bint _closed
    cdef list _serving

    cdef int _begin(self, list words) except -1
    cdef int _put(self, value) except -1
    cpdef void _end(self) except *
