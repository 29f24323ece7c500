# The attributes are typed, so that calls of the lock and of the engine are C calls.

import cython

from penstock.core.frame cimport Frame
from penstock.engine.execute cimport Engine
from penstock.engine.table cimport Command, QuickForm
from penstock.embedded cimport arguments
from penstock.embedded.collector cimport Collector
from penstock.embedded.durability cimport Keeper
from penstock.embedded.lock cimport TurnLock

cdef long long _WRITE
cdef set _NEWER


cdef class Runner  # each of them uses the other


cdef class Step:
    cdef long long run(self, Runner runner) except -1


cdef class Call(Step):
    cdef readonly bint writes
    cdef readonly object reply
    cdef readonly object refusal

    @cython.locals(keeper=Keeper)
    cdef long long run(self, Runner runner) except -1
    cdef object perform(self, Runner runner)


cdef class CommandCall(Call):
    cdef readonly Command command
    cdef readonly Frame frame
    cdef readonly object shape
    cdef QuickForm _quick
    cdef Collector _collector

    cdef int begin(self, Command command, object shape) except -1
    cdef int use_quick_form(self) except -1
    @cython.locals(engine=Engine)
    cdef object perform(self, Runner runner)
    cdef bint _run_quick(self, Engine engine) except -1
    cdef int check_known(self, Engine engine) except -1


cdef class Request(Call):
    cdef object _function

    cdef object perform(self, Runner runner)


cdef class Retrying(Call):
    cdef object _waiter

    cdef long long run(self, Runner runner) except -1
    cdef object perform(self, Runner runner)


cdef class Leaving(Step):
    cdef object _waiter

    @cython.locals(engine=Engine, keeper=Keeper)
    cdef long long run(self, Runner runner) except -1


cdef class Closing(Step):
    cdef long long run(self, Runner runner) except -1


cdef class Runner:
    cdef TurnLock _turn
    cdef readonly Engine _engine
    cdef list _calls
    cdef readonly Keeper _keeper
    cdef readonly bint _decode
    cdef bint _closed
    cdef bint _forked
    cdef list _serving
    cdef Py_ssize_t _writes_until_sweep
    cdef object __weakref__

    @cython.locals(call=CommandCall)
    cdef CommandCall _new_call(self, Command command, object shape)
    cdef object _perform(self, CommandCall call)
    cpdef object _finished(self, object reply)
    cdef int _attempt(self, Call call) except -1
    cdef int _in_turn(self, Step step) except -1
    cdef int _check_usable(self) except -1
