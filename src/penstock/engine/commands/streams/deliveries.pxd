import cython

from penstock.core cimport memory
from penstock.core.groups.group cimport Group
from penstock.core.groups.records cimport Pending
from penstock.engine.context cimport Context


@cython.final
cdef class Deliveries:
    cdef Context _context
    cdef bytes _key
    cdef Group _group
    cdef bytes _group_name
    cdef bytes _consumer

    @cython.locals(group=Group, words=list)
    cpdef int moved(self) except -1
    @cython.locals(context=Context)
    cpdef int got_new(self, list ids, long long when_ms) except -1
    @cython.locals(group=Group, words=list)
    cpdef int got(self, list ids, long long when_ms, long long count) except -1
    @cython.locals(record=Pending)
    cpdef int took(self, object ids) except -1
