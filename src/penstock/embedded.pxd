# The methods are redis-py's and take anything, so they stay untyped; what they hold is typed, so that a call
# of the engine from here is a C call.

from penstock.core.frame cimport Frame
from penstock.engine.execute cimport Engine
from penstock.engine.table cimport Command
from penstock.turn_lock cimport TurnLock

cdef Command _XADD


cdef class Database:
    cdef TurnLock _turn
    cdef Engine _engine
    cdef Frame _frame
    cdef bint _decode
    cdef bint _closed
    cdef list _serving

    cdef int _begin(self, list words) except -1
    cdef int _put(self, value) except -1
