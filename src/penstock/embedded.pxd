from penstock.core.frame cimport Frame
from penstock.engine.execute cimport Engine
from penstock.engine.table cimport Command

cdef Command _XADD


cdef class Database:
    cdef object _acquire
    cdef object _release
    cdef Engine _engine
    cdef Frame _frame
    cdef bint _decode
    cdef bint _closed

    cdef void _begin(self, list words) except *
    cdef void _put(self, value) except *
