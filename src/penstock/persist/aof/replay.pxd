# Places in the window and in the file are Py_ssize_t: a file is no longer than memory addresses.

import cython

from penstock.core.frame cimport Frame
from penstock.engine.context cimport Context
from penstock.engine.execute cimport Engine
from penstock.engine.table cimport Command
from penstock.reply cimport ReplyWriter
from penstock.wire.parser cimport Parser

cdef unsigned char _STAR
cdef unsigned char _HASH
cdef unsigned char _ONE
cdef unsigned char _NINE


# Not final: Cython would take the methods that it overrides for final ones.
cdef class Unheard(ReplyWriter):
    cpdef int put(self, object reply) except -1
    cpdef int put_raw(self, bytes data) except -1
    cpdef int put_bulk(self, bytes data) except -1
    cpdef int put_int(self, long long number) except -1
    cpdef int put_id(self, bytes ms_text, unsigned long long seq) except -1
    cpdef int put_served(self, bytes key, object entries) except -1


@cython.final
cdef class Replay:
    cdef Py_ssize_t _at
    cdef bint _batched
    cdef Context _context
    cdef Py_ssize_t _end
    cdef Engine _engine
    cdef Frame _frame
    cdef Command _last
    cdef bytes _last_word
    cdef object _lookup
    cdef Py_ssize_t _multi_at
    cdef str _name
    cdef object _on_piece
    cdef Parser _parser
    cdef list _queued
    cdef object _source
    cdef Unheard _unheard
    cdef Py_ssize_t _start
    cdef bytearray _window
    cdef readonly long long batches
    cdef readonly long long commands
    cdef readonly Py_ssize_t database
    cdef readonly object lines_crc
    cdef public object on_refused
    cdef readonly long long unvouched

    @cython.locals(at=Py_ssize_t)
    cdef bint _more(self, Py_ssize_t count) except -1
    @cython.locals(got=Py_ssize_t, count=Py_ssize_t)
    cdef bint _fill(self, Py_ssize_t missing) except -1
    @cython.locals(char="unsigned char")
    cdef int _run_next(self) except -1
    @cython.locals(parser=Parser, at=Py_ssize_t, digit="unsigned char")
    cdef bint _parse(self, Py_ssize_t until) except -1
    cdef int _step_to(self, Py_ssize_t place) except -1
    @cython.locals(frame=Frame, row=Command)
    cdef int _run_command(self) except -1
    cdef int _execute(self, Command row, Frame frame) except -1
