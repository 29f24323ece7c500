# Places in the window and in the file are Py_ssize_t: a file is no longer than memory addresses.

import cython

from penstock.core.frame cimport Frame
from penstock.engine.context cimport Context
from penstock.persist.aof.effect_runner cimport EffectRunner
from penstock.wire.parser cimport Parser

cdef unsigned char _STAR
cdef unsigned char _HASH
cdef unsigned char _ONE
cdef unsigned char _NINE


@cython.final
cdef class Replay:
    cdef Py_ssize_t _at
    cdef bint _batched
    cdef Context _context
    cdef Py_ssize_t _end
    cdef Frame _frame
    cdef Py_ssize_t _multi_at
    cdef str _name
    cdef object _on_piece
    cdef Parser _parser
    cdef EffectRunner _runner
    cdef object _source
    cdef Py_ssize_t _start
    cdef bytearray _window
    cdef readonly long long batches
    cdef readonly Py_ssize_t database
    cdef readonly object point
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
    @cython.locals(runner=EffectRunner)
    cdef int _run_command(self) except -1
