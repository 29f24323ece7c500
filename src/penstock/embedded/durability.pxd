# Compiled so that no signal handler of the program runs between two of its steps. Attributes have C types because
# every call uses them.

from penstock.persist.aof.commit cimport Commit


cdef class Keeper:
    cdef readonly object store
    cdef readonly Commit commit
    cdef readonly object health
    cdef object _options
    cdef object _rewriting
    cdef object _stopping
    cdef object _rewrites
    cdef public bint was_served
    cdef list _listeners
    cdef object _syncing
    cdef object _timer

    cpdef long long hand_over(self) except -1
    cdef bint _is_rewrite_due(self) except -1
    cpdef int wait(self, long long position) except -1
    cpdef int prepare(self, bint writes) except -1
