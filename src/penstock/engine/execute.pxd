# Waiters are few and rarely used: a Python object is fast enough.

import cython

from penstock.core.frame cimport Frame
from penstock.core.list_value cimport ListLimits
from penstock.core.stream cimport NodeLimits
from penstock.engine.clock cimport Instant
from penstock.engine.context cimport Context
from penstock.engine.effects cimport EffectSink
from penstock.engine.table cimport Command, QuickForm
from penstock.reply cimport ReplyWriter


@cython.final
cdef class Engine:
    cdef readonly Context context
    cdef readonly NodeLimits limits
    cdef readonly ListLimits list_limits
    cdef readonly object waiters
    cdef readonly long long expired_keys
    cdef public bint unfinished

    cpdef object execute(self, Command command, Frame frame)
    @cython.locals(context=Context)
    cpdef object execute_now(self, Command command, Frame frame)
    @cython.locals(context=Context, done=bint)
    cpdef bint execute_quick(self, QuickForm quick, Frame frame, ReplyWriter reply) except -1
    cpdef bint try_quick(self, QuickForm quick, Frame frame, ReplyWriter reply) except -1
    cpdef bint run_quick(self, QuickForm quick, Frame frame, ReplyWriter reply) except -1
    cpdef object run(self, Command command, Frame frame)
    cdef object _call(self, Command command, Frame frame)
    @cython.locals(context=Context, effects=EffectSink, database=Py_ssize_t, changes="long long")
    cdef object _run_recorded(self, Command command, Frame frame)
    @cython.locals(context=Context, effects=EffectSink, changes="long long", done=bint)
    cdef bint _run_quick_recorded(self, QuickForm quick, Frame frame, ReplyWriter reply) except -1
    @cython.locals(context=Context)
    cpdef void serve_waiters(self) except *
