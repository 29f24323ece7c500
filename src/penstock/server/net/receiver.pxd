# Sizes and offsets are Py_ssize_t. next() is called for every command.

import cython

from penstock.core cimport memory
from penstock.core.frame cimport Frame
from penstock.wire.parser cimport Parser, WireLimits

cdef Py_ssize_t _SLICE_BYTES
cdef Py_ssize_t _SMALL_BYTES
cdef Py_ssize_t _LARGE_SLICE_BYTES


@cython.final
cdef class Inbox:
    cdef readonly bytearray buffer
    cdef readonly object view
    cdef readonly object first


@cython.final
cdef class Receiver:
    cdef Inbox _inbox
    cdef bytearray _buffer
    cdef Py_ssize_t _end
    cdef Py_ssize_t _offered
    cdef Parser _parser
    cdef readonly Frame frame

    @cython.locals(size=Py_ssize_t)
    cpdef object room(self)
    cpdef bint received(self, Py_ssize_t count) except -1
    cpdef bint next(self) except -1
    cpdef Py_ssize_t rest_bytes(self) except? -1
    @cython.locals(parser=Parser, is_intact=bint)
    cpdef Frame last_frame_or_none(self)
    cpdef int restrict(self, bint is_stranger) except -1
    @cython.locals(parser=Parser, buffer=bytearray, start=Py_ssize_t, size=Py_ssize_t, is_own=bint, fits=bint)
    cpdef bint keep_rest(self) except -1
    cpdef int drop(self) except -1
    cdef int _grow(self) except -1
    @cython.locals(parser=Parser, room=Py_ssize_t, needed=Py_ssize_t)
    cdef Py_ssize_t _room_for(self, Py_ssize_t size) except -1
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t)
    cdef int _move(self, bytearray target) except -1
