# Counters and times are signed 64-bit numbers, which cannot overflow in practice.

import cython

from penstock.core cimport memory, spans
from penstock.core.frame cimport Frame
from penstock.engine.table cimport Command, QuickForm

cdef Py_ssize_t _SLOTS
cdef Py_ssize_t _SLOT_MASK
cdef long long _STEPS
cdef long long _BUCKETS


@cython.final
cdef class Tally:
    cdef readonly Command command
    cdef readonly bint is_fast
    cdef readonly int keyed
    cdef readonly bint is_plain
    cdef readonly QuickForm quick
    cdef readonly long long full_in
    cdef public long long quick_calls
    cdef public long long uncounted
    cdef public bytes word
    cdef readonly long long calls
    cdef readonly long long us
    cdef public long long failed
    cdef public long long rejected
    cdef bytearray histogram

    @cython.locals(bucket="long long", shift="int")
    cpdef int count(self, long long calls, long long us) except -1


@cython.final
cdef class Tallies:
    cdef readonly object lookup
    cdef readonly dict by_name
    cdef set _containers
    cdef list _words
    cdef list _found

    @cython.locals(buffer=bytearray, start=Py_ssize_t, size=Py_ssize_t, slot=Py_ssize_t, found=Tally, tally=Tally)
    cpdef Tally find(self, Frame frame)
