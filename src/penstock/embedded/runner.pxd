# What a runner holds is typed, so that a call of the engine from here is a C call.

from penstock.core.frame cimport Frame
from penstock.engine.execute cimport Engine
from penstock.engine.table cimport Command
from penstock.embedded.lock cimport TurnLock

cdef long long _WRITE


cdef class Runner:
    cdef TurnLock _turn
    cdef Engine _engine
    cdef list _frames
    cdef object _keeper
    cdef bint _decode
    cdef bint _closed
    cdef list _serving

    cdef Frame _new_frame(self)
    cdef object _perform(self, Command command, Frame frame, object shape)
    cdef int _check_usable(self) except -1


cdef int put(Frame frame, value) except -1
