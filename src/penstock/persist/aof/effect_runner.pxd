# A log has millions of effects: one C call for each.

import cython

from penstock.core.frame cimport Frame
from penstock.engine.context cimport Context
from penstock.engine.execute cimport Engine
from penstock.engine.table cimport Command
from penstock.reply cimport ReplyWriter


# Not final: Cython would take the methods that it overrides for final ones.
cdef class Unheard(ReplyWriter):
    cpdef int put(self, object reply) except -1
    cpdef int put_raw(self, bytes data) except -1
    cpdef int put_bulk(self, bytes data) except -1
    cpdef int put_int(self, long long number) except -1
    cpdef int put_id(self, bytes ms_text, unsigned long long seq) except -1
    cpdef int put_served(self, bytes key, object entries) except -1


@cython.final
cdef class EffectRunner:
    cdef Context _context
    cdef Engine _engine
    cdef Command _last
    cdef bytes _last_word
    cdef object _lookup
    cdef list _queued
    cdef Unheard _unheard
    cdef readonly long long commands
    cdef readonly bint in_transaction
    cdef public object on_refused

    cpdef int start(self) except -1
    @cython.locals(row=Command)
    cpdef int run(self, Frame frame) except -1
    cdef int _execute(self, Command row, Frame frame) except -1
