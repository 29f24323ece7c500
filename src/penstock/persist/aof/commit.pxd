# Compiled so that no signal handler of the program runs between two of its steps. Attributes have C types because an
# embedded call uses dozens of them.

from penstock.persist.aof.increment cimport Increment
from penstock.persist.aof.journal cimport Journal


cdef class Commit:
    cdef public Journal journal
    cdef public object policy
    cdef public Increment file
    cdef public long long position
    cdef public long long released
    cdef public long long synced
    cdef public object failure
    cdef public bint is_based
    cdef bint _is_known
    cdef long long _written
    cdef long long _settled
    cdef public object clock_s
    cdef long long _noted_s
    cdef public object on_taken
    cdef list _queue
    cdef long long _queued
    cdef long long _queued_bytes
    cdef public long long waiting
    cdef public long long served
    cdef public double quick_seconds
    cdef public double sync_seconds
    cdef public object steady_s
    cdef bint _was_alone
    cdef bint _busy
    cdef bint _owner_works
    cdef bint _sync_works
    cdef object _state
    cdef object _writing
    cdef public object wake

    cpdef bint hand_over(self, long long clients=*, object note=*) except -1
    cdef int _take_over(self, long long clients, object note) except -1
    cdef bytes _take_journal(self)
    cdef bint _must_write(self) except -1
    cdef bint _is_alone(self, long long clients) except -1
    cdef int _write(self, bytes data) except -1
