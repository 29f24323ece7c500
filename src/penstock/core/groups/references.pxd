import cython

from penstock.core cimport memory, stream_id, stream_node
from penstock.core.groups.group cimport Group
from penstock.core.groups.pending_index cimport PendingIndex
from penstock.core.rax.tree cimport Rax, RaxIterator
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID
from penstock.core.stream_node cimport NodeCursor

cdef StreamID _LARGEST

cpdef int add_group(Stream stream, bytes name, Group group) except -1
@cython.locals(group=Group)
cpdef bint remove_group(Stream stream, bytes name, object garbage=*) except -1


@cython.final
cdef class References:
    cdef Stream _stream
    cdef list _groups
    cdef unsigned long long _read_ms
    cdef unsigned long long _read_seq

    cpdef bint holds(self, unsigned long long ms, unsigned long long seq) except -1
    @cython.locals(group=Group, index=PendingIndex)
    cdef bint _is_pending(self, bytes key) except -1
    @cython.locals(group=Group)
    cpdef bint forget(self, StreamID entry_id) except -1
    @cython.locals(group=Group, pending=StreamID, forgotten="long long")
    cpdef Py_ssize_t forget_before(self, StreamID first) except -1
    @cython.locals(stream=Stream, removed="long long", nodes=RaxIterator, live="long long", is_last=bint,
                   ms="unsigned long long", seq="unsigned long long")
    cpdef Py_ssize_t trim_unreferenced(self, long long length_max, StreamID min_id, long long limit, bint thorough) except -1
    @cython.locals(stream=Stream, removed="long long", entry=NodeCursor, found=bint)
    cdef Py_ssize_t _trim_node(self, bytes key, bytearray node, long long length_max, StreamID min_id) except -1
