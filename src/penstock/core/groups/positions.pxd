import cython

from penstock.core cimport stream_id
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID

cdef int _LAG_COUNTS_TRIMMED
cdef long long _RANK_UNKNOWN
cdef StreamID _SMALLEST

cpdef bint has_tombstones_from(Stream stream, unsigned long long ms, unsigned long long seq) except -1
cpdef bint starts_after(Stream stream, StreamID entry_id) except -1
@cython.locals(last=int, max_deleted=StreamID, first=StreamID)
cpdef Py_ssize_t rank_or_unknown(Stream stream, StreamID entry_id) except? -2
