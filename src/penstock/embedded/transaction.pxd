# Compiled so that no signal handler of the program runs between two commands of a transaction.

import cython

from penstock.embedded.database cimport Database
from penstock.embedded.runner cimport Call, CommandCall, Runner
from penstock.engine.context cimport Context
from penstock.engine.execute cimport Engine
from penstock.engine.table cimport Command


cdef class Recorder(Database):
    cdef CommandCall call

    cdef CommandCall _new_call(self, Command command, object shape)
    cdef object _perform(self, CommandCall call)


cdef class Transaction(Call):
    cdef readonly list calls
    cdef object _watching
    cdef bint _is_atomic

    @cython.locals(context=Context)
    cdef object perform(self, Runner runner)
    @cython.locals(call=CommandCall)
    cdef int _check_known(self, Engine engine) except -1
    @cython.locals(call=CommandCall)
    cdef list _run_as_unit(self, Engine engine)
    @cython.locals(call=CommandCall)
    cdef list _run_each(self, Engine engine)
