# Every command passes through here.

import cython

from penstock.core cimport spans
from penstock.core.frame cimport Frame
from penstock.engine.clock cimport Instant
from penstock.engine.execute cimport Engine
from penstock.server.net.receiver cimport Receiver
from penstock.server.server cimport Server
from penstock.server.session.reply_buffer cimport ReplyBuffer
from penstock.server.session.session cimport Session
from penstock.server.stats.tally cimport Tally
from penstock.wire.encoder cimport Encoder

cdef long long _STOPPED
cdef long long _PAUSED
cdef long long _BLOCKED
cdef long long _MONITORED
cdef long long _RUN_MAX
cdef Py_ssize_t _RUN_BYTES_MAX
cdef long long _SLICE_US
cdef Py_ssize_t _SPILL_BYTES


@cython.final
cdef class CommandRunner:
    cdef Engine _engine
    cdef Encoder _output
    cdef ReplyBuffer _replies
    cdef Server _server
    cdef Session _session
    cdef Py_ssize_t _timed_bytes
    cdef long long _timed_us
    cdef list _uncounted
    cdef long long _untimed
    cdef readonly bint has_more

    @cython.locals(session=Session, receiver=Receiver, frame=Frame, instant=Instant, started_us="long long")
    cpdef int run_received(self) except -1
    @cython.locals(session=Session, server=Server, receiver=Receiver, frame=Frame, output=Encoder, tally=Tally)
    cdef bint _run_quickly(self, long long started_us) except -1
    @cython.locals(session=Session)
    cdef bint _has_used_slice(self, long long started_us) except -1
    @cython.locals(session=Session, is_special=bint, ran=bint)
    cdef int _run_full(self, Tally tally, Frame frame) except -1
    cdef int _note(self, Tally tally) except -1
    @cython.locals(session=Session)
    cdef int _find(self, Frame frame) except -1
    @cython.locals(tally=Tally, last=Tally, instant=Instant, us="long long", now_us="long long")
    cdef int _settle(self, Frame frame) except -1
    cdef int _run_data(self, Tally tally, Frame frame) except -1
    cdef int _run_in_session(self, Tally tally, Frame frame) except -1
    @cython.locals(session=Session, ran=bint)
    cdef bint _run_checked(self, Tally tally, Frame frame) except -1
    @cython.locals(session=Session, server=Server)
    cdef bint _try(self, Tally tally, Frame frame) except -1
