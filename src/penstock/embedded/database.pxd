# Arguments have any type, as in redis-py, so they stay untyped.

import cython

from penstock.core.frame cimport Frame
from penstock.embedded cimport arguments
from penstock.engine.table cimport Command
from penstock.embedded.runner cimport CommandCall, Runner

cdef Command _XADD
cdef Command _XREADGROUP
cdef Command _XACK
cdef object _SERVED


cdef class Database(Runner):
    pass
