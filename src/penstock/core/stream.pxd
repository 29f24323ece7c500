import cython

from penstock.core cimport memory, spans, stream_cursor, stream_id, stream_node
from penstock.core.frame cimport Frame
from penstock.core.idempotency cimport Idempotency, IdempotencySettings
from penstock.core.groups.pending_index cimport PendingIndex
from penstock.core.rax cimport cutting
from penstock.core.rax.last_found cimport LastFound
from penstock.core.rax.tree cimport Rax, RaxIterator
from penstock.core.stream_cursor cimport EntryCursor, EntryRange
from penstock.core.stream_id cimport StreamID
from penstock.core.stream_node cimport NodeCursor

cdef unsigned long long _MAX64
cdef long long _ENTRY_BYTES_MAX
cdef long long _COUNT_MAX
cdef StreamID _SMALLEST
cdef StreamID _LARGEST
cdef long long _KEPT_ROOM_FACTOR


@cython.final
cdef class NodeLimits:
    cdef public long long bytes_max
    cdef public long long entries_max
    cdef public IdempotencySettings idempotency
    cdef public int lag_rule


# Halves of ids are unsigned 64-bit numbers. Counts are signed, so that a trim's subtractions can go below
# zero.
@cython.final
cdef class Stream:
    cdef readonly NodeLimits limits
    cdef readonly Rax nodes
    cdef public Rax groups
    cdef readonly LastFound group_found
    cdef public PendingIndex pending_index
    cdef public Idempotency idempotency
    cdef public IdempotencySettings idempotency_settings
    cdef bytearray _head
    cdef bytearray _tail
    cdef bytes _text
    cdef unsigned long long _text_ms
    cdef readonly long long length
    cdef readonly unsigned long long last_ms
    cdef readonly unsigned long long last_seq
    cdef readonly unsigned long long max_deleted_ms
    cdef readonly unsigned long long max_deleted_seq
    cdef readonly long long entries_added
    cdef readonly unsigned long long tail_ms
    cdef readonly unsigned long long tail_seq
    cdef readonly long long version

    cpdef int append(self, unsigned long long now_ms, Frame frame, Py_ssize_t first) except -1
    cpdef int append_at(self, unsigned long long ms, unsigned long long seq, Frame frame, Py_ssize_t first) except -1
    cpdef int append_in_ms(self, unsigned long long ms, Frame frame, Py_ssize_t first) except -1
    cdef int _append(self, unsigned long long ms, unsigned long long seq, Frame frame, Py_ssize_t first) except -1
    @cython.locals(raw_bytes="long long", bound=Py_ssize_t, tail=bytearray)
    cdef int _append_any(self, unsigned long long ms, unsigned long long seq, Frame frame, Py_ssize_t first) except -1
    @cython.locals(bytes_max="long long")
    cdef long long _node_bytes_max(self) noexcept
    @cython.locals(entries_max="long long")
    cdef long long _node_entries_max(self) noexcept
    cdef bint _is_full(self, bytearray tail, long long raw_bytes) except -1
    @cython.locals(fresh=bytearray, sealed=bytearray)
    cdef bytearray _begin_node(self, bytearray tail, unsigned long long ms, unsigned long long seq, Py_ssize_t bound)

    @cython.locals(cursor=EntryCursor)
    cpdef bint delete(self, StreamID entry_id) except -1
    @cython.locals(removed="long long", live="long long", dropped="long long", capped=bint, nodes=RaxIterator)
    cpdef Py_ssize_t trim_length(self, long long length_max, bint approximate=*, long long limit=*, object garbage=*) except -1
    @cython.locals(removed="long long", live="long long", dropped="long long", capped=bint, nodes=RaxIterator, entry=NodeCursor,
                   last_key=bytes)
    cpdef Py_ssize_t trim_min_id(self, StreamID min_id, bint approximate=*, long long limit=*, object garbage=*) except -1
    @cython.locals(dropped=list, nodes=RaxIterator)
    cdef void _drop_nodes(self, long long count, long long live, bytes key, object garbage) except *
    @cython.locals(removed="long long", entry=NodeCursor, found=bint)
    cdef Py_ssize_t _trim_node(self, bytearray node, bytes key, long long most, StreamID min_id) except -1
    cpdef bint trim_entry(self, NodeCursor entry) except -1
    @cython.locals(nodes=RaxIterator)
    cdef bytearray _first_node(self)
    cdef int _drop_node(self, bytes key, long long live) except -1
    @cython.locals(nodes=RaxIterator)
    cdef int _find_tail(self) except -1

    cpdef EntryRange range(self, StreamID start=*, StreamID end=*, long long limit=*, bint reverse=*)
    cpdef EntryCursor cursor(self, StreamID start=*, StreamID end=*, bint reverse=*)
    cpdef bytes last_id_text(self)
    cpdef bytes last_ms_text(self)
    cpdef bint contains(self, StreamID entry_id) except -1
    @cython.locals(cursor=EntryCursor)
    cpdef StreamID first_id(self)
    @cython.locals(cursor=EntryCursor)
    cpdef StreamID last_entry_id(self)
    cpdef tuple tail_or_none(self)
    cpdef bint has_reused(self, bytearray node, unsigned long long master_ms, unsigned long long master_seq) except -1
    cpdef void set_last_id(self, StreamID last, long long entries_added, StreamID max_deleted) except *
    cpdef void load_node(self, StreamID master, bytearray node) except *
    @cython.locals(made=Stream)
    cpdef Stream copy(self)
