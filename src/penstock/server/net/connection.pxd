# asyncio wants no base class of such a protocol, only its methods, so it can be compiled.

import cython

from penstock.core cimport memory
from penstock.server.session.session cimport Session
from penstock.wire.parser cimport Parser

cdef Py_ssize_t _SLICE_BYTES
cdef Py_ssize_t _SMALL_BYTES
cdef Py_ssize_t _LARGE_SLICE_BYTES


@cython.final
cdef class Inbox:
    cdef readonly bytearray buffer
    cdef readonly object view
    cdef readonly object first


@cython.final
cdef class Connection:
    cdef Inbox _inbox
    cdef bytearray _kept
    cdef Py_ssize_t _kept_size
    cdef Py_ssize_t _offered
    cdef bint _waits
    cdef bint _can_wait
    cdef readonly Session session
    cdef readonly object transport
    cdef readonly object write

    @cython.locals(kept=bytearray, size=Py_ssize_t)
    cpdef object get_buffer(self, Py_ssize_t hint)
    @cython.locals(session=Session, buffer=bytearray, end=Py_ssize_t)
    cpdef int buffer_updated(self, Py_ssize_t count) except -1
    @cython.locals(kept=bytearray)
    cpdef int go_on(self) except -1
    cdef int _wait_for_turn(self) except -1
    @cython.locals(parser=Parser)
    cdef int _run(self, bytearray buffer, Py_ssize_t end) except -1
    cdef int _feed(self, bytearray buffer, Py_ssize_t end) except -1
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t, is_kept=bint, was_large=bint)
    cdef int _keep(self, bytearray buffer, Py_ssize_t end) except -1
    @cython.locals(was_large=bint)
    cdef int _let_go(self) except -1
    @cython.locals(parser=Parser, room=Py_ssize_t, needed=Py_ssize_t)
    cdef Py_ssize_t _room_for(self, Py_ssize_t size) except -1
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t)
    cdef bytearray _make_room(self)
    cdef int _move(self, bytearray target, bytearray source, Py_ssize_t start, Py_ssize_t size) except -1
