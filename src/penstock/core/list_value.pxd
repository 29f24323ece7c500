import cython

from penstock.core cimport listpack, memory, stream_node

cdef Py_ssize_t _HEADER_BYTES
cdef unsigned char _END
cdef Py_ssize_t _COUNT_UNKNOWN
cdef Py_ssize_t _OVERHEAD_MAX
cdef int _BEFORE
cdef int _REPLACE
cdef Py_ssize_t _OVERHEAD_ESTIMATE
cdef Py_ssize_t _JOIN_UNDERESTIMATE
cdef Py_ssize_t _KEPT_ROOM_FACTOR
cdef Py_ssize_t _SLACK_BYTES_MAX
cdef bytearray _EMPTY


@cython.final
cdef class ListLimits:
    cdef public long long bytes_max
    cdef public long long entries_max

    cpdef void set_listpack_size(self, long long size) except *


# Indexes and counts are signed: a negative index counts from the end.
@cython.final
cdef class ListValue:
    cdef readonly ListLimits limits
    cdef list _nodes
    cdef Py_ssize_t _first
    cdef readonly Py_ssize_t length

    cpdef void push_left(self, bytes data) except *
    cpdef void push_right(self, bytes data) except *
    @cython.locals(node=bytearray, total=Py_ssize_t, grown=Py_ssize_t)
    cpdef void push_piece(self, bytearray source, Py_ssize_t start, Py_ssize_t size, bint left) except *
    @cython.locals(fresh=bytearray, number=Py_ssize_t, node=bytearray, total=Py_ssize_t)
    cdef bytearray _node_for(self, Py_ssize_t size, bint left)
    @cython.locals(sealed=bytearray, fresh=bytearray)
    cdef bytearray _begin_node(self, bytearray full, Py_ssize_t size, bint left)
    @cython.locals(made=bytearray)
    cdef bytearray _fresh(self, Py_ssize_t size)
    @cython.locals(gap=Py_ssize_t)
    cdef void _open_gap(self) except *
    cdef bytearray _node(self, Py_ssize_t number)

    @cython.locals(node=bytearray, data=bytes)
    cpdef bytes pop_left_or_none(self)
    @cython.locals(node=bytearray, data=bytes, at=Py_ssize_t)
    cpdef bytes pop_right_or_none(self)
    cdef void _drop_first(self) except *
    cdef void _drop_last(self) except *
    cdef void _close_gap(self) except *
    cpdef void trim(self, Py_ssize_t start, Py_ssize_t end) except *
    @cython.locals(node=bytearray, present=Py_ssize_t)
    cdef void _drop_left(self, Py_ssize_t count) except *
    @cython.locals(node=bytearray, present=Py_ssize_t)
    cdef void _drop_right(self, Py_ssize_t count) except *
    @cython.locals(needle=_Needle, backwards=bint, limit=Py_ssize_t, removed=Py_ssize_t, emptied=bint,
                   number=Py_ssize_t, nodes=list, node=bytearray, places=list)
    cpdef Py_ssize_t remove(self, bytes value, Py_ssize_t count) except -1

    @cython.locals(number=Py_ssize_t, inner=Py_ssize_t, node=bytearray, present=Py_ssize_t, at=Py_ssize_t,
                   behind=Py_ssize_t, parts=list)
    cpdef bint replace(self, Py_ssize_t index, bytes data) except -1
    @cython.locals(needle=_Needle, number=Py_ssize_t, at=Py_ssize_t, node=bytearray)
    cpdef bint insert(self, bytes pivot, bytes data, bint after) except -1
    @cython.locals(node=bytearray)
    cdef void _insert_at(self, Py_ssize_t number, Py_ssize_t at, bytes data, bint after) except *
    @cython.locals(node=bytearray)
    cdef bint _takes(self, Py_ssize_t number, Py_ssize_t size) except -1
    @cython.locals(node=bytearray, before=Py_ssize_t, left=bytearray, right=bytearray)
    cdef void _split(self, Py_ssize_t number, Py_ssize_t at, bytes data, bint after) except *
    cdef void _join_around(self, Py_ssize_t number) except *
    @cython.locals(left=bytearray, right=bytearray, count=Py_ssize_t, total=Py_ssize_t, made=bytearray,
                   kept=Py_ssize_t, estimate=Py_ssize_t)
    cdef bint _join(self, Py_ssize_t number) except -1
    cdef void _seal(self, Py_ssize_t number) except *

    @cython.locals(number=Py_ssize_t, inner=Py_ssize_t, node=bytearray)
    cpdef bytes get_or_none(self, Py_ssize_t index)
    @cython.locals(found=list, number=Py_ssize_t, inner=Py_ssize_t, left=Py_ssize_t, node=bytearray, at=Py_ssize_t)
    cpdef list range(self, Py_ssize_t start, Py_ssize_t end)
    @cython.locals(needle=_Needle, found=list, backwards=bint, skipped=Py_ssize_t, left=Py_ssize_t,
                   index=Py_ssize_t, step=Py_ssize_t, number=Py_ssize_t, node=bytearray, at=Py_ssize_t)
    cpdef list positions(self, bytes value, Py_ssize_t rank, Py_ssize_t limit, Py_ssize_t scan_max)
    @cython.locals(number=Py_ssize_t, present=Py_ssize_t, first=Py_ssize_t)
    cdef tuple _find(self, Py_ssize_t index)

    @cython.locals(node=bytearray, count=Py_ssize_t)
    cpdef void load_node(self, data) except *
    @cython.locals(made=ListValue)
    cpdef ListValue copy(self)
    cpdef tuple inside(self)
    cdef list _present(self)


@cython.locals(total=Py_ssize_t)
cdef bytearray _sealed(bytearray node)
cdef Py_ssize_t _seek(bytearray node, Py_ssize_t index, Py_ssize_t count) except -1
@cython.locals(total=Py_ssize_t)
cdef void _cut(bytearray node, Py_ssize_t at, Py_ssize_t until, Py_ssize_t count) except *
@cython.locals(total=Py_ssize_t, end=Py_ssize_t, index=Py_ssize_t, at=Py_ssize_t, kept=Py_ssize_t)
cdef void _cut_all(bytearray node, list places) except *
@cython.locals(count=Py_ssize_t)
cdef void _shrink(bytearray node, Py_ssize_t total, Py_ssize_t removed) except *
@cython.locals(count=Py_ssize_t, each=Py_ssize_t)
cdef Py_ssize_t _count_before(bytearray node, Py_ssize_t at) except -1
@cython.locals(total=Py_ssize_t, made=bytearray)
cdef bytearray _part(bytearray node, Py_ssize_t start, Py_ssize_t until, Py_ssize_t count)
@cython.locals(made=bytearray)
cdef bytearray _node_of(bytes data)
cdef void _finish(bytearray node, Py_ssize_t total, Py_ssize_t count) except *


@cython.final
cdef class _Needle:
    cdef bytearray _source
    cdef Py_ssize_t _size
    cdef bint _is_int
    cdef long long _number

    @cython.locals(found=list, at=Py_ssize_t)
    cdef list places(self, bytearray node, Py_ssize_t limit, bint backwards)
    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t first_or_zero(self, bytearray node) except -1
    cdef bint is_at(self, bytearray node, Py_ssize_t at) except -1
