# Arguments have any type, as in redis-py, so they stay untyped.

from penstock.embedded cimport runner
from penstock.engine.table cimport Command
from penstock.embedded.runner cimport Runner

cdef Command _XADD


cdef class Database(Runner):
    pass
