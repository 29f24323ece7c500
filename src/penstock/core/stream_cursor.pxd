import cython

from penstock.core cimport memory, stream_id, stream_node
from penstock.core.rax.tree cimport RaxIterator
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID
from penstock.core.stream_node cimport NodeCursor

cdef StreamID _SMALLEST
cdef StreamID _LARGEST


@cython.final
cdef class Bookmark:
    cdef readonly unsigned long long ms
    cdef readonly unsigned long long seq
    cdef bytearray _node
    cdef unsigned long long _master_ms
    cdef unsigned long long _master_seq
    cdef Py_ssize_t _place
    cdef long long _version

    cpdef int move_to(self, Stream stream, NodeCursor entry) except -1
    cpdef bint holds_in(self, Stream stream) except -1


@cython.final
cdef class EntryRange:
    cdef readonly Stream stream
    cdef readonly StreamID start
    cdef readonly StreamID end
    cdef readonly long long limit
    cdef readonly bint reverse
    cdef public Bookmark bookmark

    cpdef EntryCursor cursor(self)
    @cython.locals(found=list, cursor=EntryCursor, entry=NodeCursor)
    cpdef list entries(self)
    @cython.locals(found=list, cursor=EntryCursor, entry=NodeCursor)
    cpdef list mappings(self)


@cython.locals(made=EntryCursor)
cpdef EntryCursor cursor_from(Stream stream, StreamID start, StreamID end, bint reverse, Bookmark bookmark)

cdef int _BEFORE_NODE
cdef int _IN_NODE
cdef int _BEHIND_NODE
cdef int _DONE


@cython.final
cdef class EntryCursor:
    cdef readonly Stream stream
    cdef readonly NodeCursor entry
    cdef readonly bint reverse
    cdef unsigned long long _start_ms
    cdef unsigned long long _start_seq
    cdef unsigned long long _end_ms
    cdef unsigned long long _end_seq
    cdef bint _returned
    cdef int _state
    cdef Py_ssize_t _place
    cdef RaxIterator _nodes
    cdef long long _version

    cdef int _open(self, Stream stream, StreamID start, StreamID end, bint reverse, Bookmark bookmark) except -1
    @cython.locals(made=Bookmark)
    cpdef Bookmark bookmark(self)
    cpdef int rest(self) except -1
    cpdef bint resume(self, Stream stream, unsigned long long ms, unsigned long long seq) except -1
    @cython.locals(entry=NodeCursor, before_start=bint, behind_end=bint)
    cpdef bint advance(self) except -1
    cpdef bint covers(self, unsigned long long ms, unsigned long long seq) noexcept
    @cython.locals(entry=NodeCursor, found=bint)
    cdef bint _step(self) except -1
    @cython.locals(stream=Stream, entry=NodeCursor)
    cpdef bint remove(self) except -1
    @cython.locals(entry=NodeCursor)
    cdef bint _is_stale(self) except -1
    @cython.locals(edge=StreamID)
    cdef void _narrow(self) except *
    @cython.locals(stream=Stream, near_ms="unsigned long long", near_seq="unsigned long long")
    cdef void _seek(self, Bookmark bookmark) except *
    @cython.locals(nodes=RaxIterator, key=bytes)
    cdef void _open_next_node(self) except *
