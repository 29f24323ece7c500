import cython

from penstock.core cimport listpack, memory
from penstock.core.frame cimport Frame

cdef int _DELETED
cdef int _SAME_FIELDS
cdef unsigned char _END
cdef Py_ssize_t _COUNT_UNKNOWN
cdef Py_ssize_t _EMPTY_BYTES
cdef Py_ssize_t _OVERHEAD_MAX
cdef Py_ssize_t _LIVE_AT
cdef Py_ssize_t _FIXED_BYTES_MAX
cdef unsigned int _SMALL_MAX
cdef Py_ssize_t _ROOM_BYTES_MIN

@cython.locals(fields=Py_ssize_t, at=Py_ssize_t, i=Py_ssize_t, piece=Py_ssize_t)
cpdef int begin(bytearray node, Frame frame, Py_ssize_t first, Py_ssize_t raw_bytes) except -1
# Distances are signed: memory.distance wraps them, memory.advance unwraps them.
@cython.locals(fields=Py_ssize_t, at=Py_ssize_t, piece=Py_ssize_t, pieces=Py_ssize_t, same=bint, moved=Py_ssize_t,
               step=Py_ssize_t, end=Py_ssize_t, flags=int)
cpdef bint append_entry(bytearray node, long long ms_delta, long long seq_delta, Frame frame, Py_ssize_t first,
                        Py_ssize_t raw_bytes) except -1
cpdef Py_ssize_t bytes_bound(Py_ssize_t fields, Py_ssize_t raw_bytes) except -1
@cython.locals(fields=Py_ssize_t, names_bytes=Py_ssize_t, i=Py_ssize_t)
cpdef Py_ssize_t node_bound(Frame frame, Py_ssize_t first, Py_ssize_t raw_bytes) except -1
cpdef int reserve(bytearray node, Py_ssize_t more) except -1
@cython.locals(missing=Py_ssize_t)
cpdef int lengthen(bytearray node, Py_ssize_t size) except -1
@cython.locals(count=Py_ssize_t)
cdef int _finish(bytearray node, Py_ssize_t at, Py_ssize_t elements) except -1
@cython.locals(start=Py_ssize_t, behind=Py_ssize_t)
cdef Py_ssize_t _put_piece(bytearray node, Py_ssize_t at, Frame frame, Py_ssize_t piece) except -1
@cython.locals(at=Py_ssize_t, piece=Py_ssize_t, start=Py_ssize_t, size=Py_ssize_t)
cdef bint _has_header_fields(bytearray node, Frame frame, Py_ssize_t first, Py_ssize_t fields) except -1
cpdef long long live_count(bytearray node) except? -1
@cython.locals(live="unsigned int", deleted="unsigned int", deleted_at=Py_ssize_t)
cpdef long long entry_count(bytearray node) except? -1
cpdef bytearray sealed(bytearray node)


cdef bytearray _NO_NODE

@cython.locals(made=NodeCursor)
cpdef NodeCursor new_cursor()


@cython.final
cdef class NodeCursor:
    cdef readonly bytearray node
    cdef readonly unsigned long long master_ms
    cdef readonly unsigned long long master_seq
    cdef readonly unsigned long long ms
    cdef readonly unsigned long long seq
    cdef readonly bint deleted
    cdef readonly bint same_fields
    cdef readonly Py_ssize_t field_count
    cdef list _names
    cdef readonly Py_ssize_t place
    cdef readonly Py_ssize_t names_at
    cdef readonly Py_ssize_t pieces_at
    cdef Py_ssize_t _entries_at
    cdef Py_ssize_t _header_fields
    cdef Py_ssize_t _left

    cdef int _reset(self) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int open(self, bytearray node, unsigned long long master_ms, unsigned long long master_seq) except -1
    cpdef bint enter(self, Py_ssize_t at) except -1
    cpdef bint first(self) except -1
    cpdef bint last(self) except -1
    @cython.locals(at=Py_ssize_t, found=Py_ssize_t)
    cpdef bint next(self) except -1
    cpdef bint previous(self) except -1
    @cython.locals(_=Py_ssize_t)
    cdef bint _enter_before(self, Py_ssize_t at) except -1
    @cython.locals(behind=Py_ssize_t)
    cdef inline Py_ssize_t _behind(self, Py_ssize_t at, Py_ssize_t count) except -1
    @cython.locals(node=bytearray, flags="long long")
    cdef bint _enter(self, Py_ssize_t at) except -1
    @cython.locals(flat=list)
    cpdef list fields(self)
    @cython.locals(found=dict)
    cpdef dict mapping(self)
    @cython.locals(piece=bytes)
    cdef bytes _next_piece(self)
    @cython.locals(at=Py_ssize_t, _=Py_ssize_t)
    cdef list _header_names(self)
    @cython.locals(live="long long", deleted="long long", deleted_at=Py_ssize_t, moved=Py_ssize_t, flags=int)
    cpdef bint mark_deleted(self) except -1
