import cython

from penstock.core cimport memory, stream_cursor, stream_id
from penstock.core.groups cimport positions
from penstock.core.groups.pending_index cimport PendingIndex
from penstock.core.groups.consumer cimport Consumer
from penstock.core.groups.pending_list cimport PendingList, PendingWalk
from penstock.core.groups.records cimport ClaimOptions, Pending, idle_key, made_pending
from penstock.core.groups.results cimport AutoClaim, ClaimedEntry, PendingRow
from penstock.core.rax cimport cutting
from penstock.core.rax.last_found cimport LastFound
from penstock.core.rax.tree cimport Rax, RaxIterator
from penstock.core.stream cimport Stream
from penstock.core.stream_cursor cimport Bookmark, EntryCursor, EntryRange
from penstock.core.stream_id cimport StreamID
from penstock.reply cimport ReplyWriter

cdef long long _UNKNOWN
cdef long long _COUNT_MAX
cdef int _NOBODY
cdef int _LAG_COUNTS_TRIMMED
cdef int _LAG_RECOUNTS
cdef long long _SCANS_PER_CLAIM
cdef long long _VAIN_SCANS_MAX


@cython.final
cdef class Group:
    cdef readonly unsigned long long last_ms
    cdef readonly unsigned long long last_seq
    cdef public long long entries_read
    cdef readonly PendingList pending
    cdef readonly Rax consumers
    cdef readonly LastFound consumer_found
    cdef readonly object returned
    cdef Rax _idle_order
    cdef PendingIndex _index
    cdef list _by_number
    cdef EntryCursor _cursor
    cdef list _free_numbers

    cpdef void set_position(self, StreamID last, long long entries_read) except *
    @cython.locals(made=Group, original=Consumer, consumer=Consumer, known=Pending, record=Pending)
    cpdef Group copy(self)
    @cython.locals(records=PendingWalk, key=bytes)
    cpdef void use_index(self, PendingIndex index) except *
    @cython.locals(consumer=Consumer)
    cpdef Consumer consumer_or_none(self, bytes name)
    @cython.locals(consumer=Consumer)
    cpdef Consumer consumer_by_number(self, Py_ssize_t number)
    @cython.locals(consumer=Consumer, number=Py_ssize_t)
    cpdef Consumer create_consumer(self, bytes name, long long now_ms)
    @cython.locals(forgotten="long long", records=PendingWalk)
    cpdef Py_ssize_t delete_consumer(self, Consumer consumer, object garbage=*) except -1
    @cython.locals(kept=PendingList, other=Consumer)
    cdef int _keep_others(self, Consumer consumer, object garbage) except -1

    @cython.locals(cursor=EntryCursor, delivered="long long", first=Bookmark, found=EntryRange)
    cpdef EntryRange deliver(self, Stream stream, Consumer consumer, long long limit, long long now_ms, bint ack)
    @cython.locals(cursor=EntryCursor, delivered=Py_ssize_t)
    cpdef Py_ssize_t deliver_to(self, Stream stream, Consumer consumer, long long limit, long long now_ms, bint ack,
                                bytes key, ReplyWriter reply, list ids) except -1
    cdef bint _is_behind(self, Stream stream) noexcept
    @cython.locals(cursor=EntryCursor, is_known=bint, start=StreamID)
    cdef EntryCursor _cursor_at_position(self, Stream stream)
    cdef bint _deliver_next(self, Stream stream, EntryCursor cursor, Consumer consumer, long long now_ms,
                            bint ack) except -1
    cdef bint _was_overtaken(self, Stream stream) except -1
    @cython.locals(ms="unsigned long long", seq="unsigned long long", start_ms="unsigned long long",
                   start_seq="unsigned long long")
    cdef int _advance_to(self, Stream stream, EntryCursor cursor) except -1
    @cython.locals(record=Pending, known=Pending)
    cdef int _add_pending(self, Consumer consumer, long long now_ms) except -1
    cdef int _remember(self, Pending record) except -1
    cdef int _forget(self, Pending record) except -1
    cdef int _hand_over(self, Pending record, Consumer consumer, long long delivery_ms) except -1
    @cython.locals(found=list, records=PendingWalk, start=StreamID, entry_id=StreamID, cursor=EntryCursor, record=Pending)
    cpdef list redeliver(self, Stream stream, Consumer consumer, StreamID after, long long limit, long long now_ms)
    cpdef bint acknowledge(self, StreamID entry_id) except -1
    @cython.locals(record=Pending)
    cpdef bint acknowledge_key(self, bytes key) except -1
    @cython.locals(key=bytes, record=Pending)
    cpdef int give_back(self, StreamID entry_id, long long delivery_count) except -1
    @cython.locals(key=bytes, record=Pending)
    cpdef int add_returned(self, StreamID entry_id, long long delivery_count) except -1

    @cython.locals(record=Pending)
    cpdef bint claim(self, Stream stream, StreamID entry_id, Consumer consumer, ClaimOptions options, long long now_ms) except -1
    cdef int _take(self, Pending record, Consumer consumer, ClaimOptions options) except -1
    @cython.locals(found=AutoClaim, now_ms="long long", scans_left="long long", vain_left="long long",
                   records=PendingWalk, entry_id=StreamID, record=Pending)
    cpdef AutoClaim autoclaim(self, Stream stream, StreamID start, long long limit, Consumer consumer, ClaimOptions options)

    @cython.locals(found=list, returned=Pending, rows=RaxIterator, record=Pending,
                   idle_ms="long long", entry=ClaimedEntry, claimed=Pending)
    cpdef list claim_idle(self, Stream stream, Consumer consumer, long long idle_ms_min, long long limit, long long now_ms)
    @cython.locals(entry_id=StreamID, cursor=EntryCursor)
    cdef int _add_claimed(self, Stream stream, Pending record, long long idle_ms, list found) except -1
    @cython.locals(key=bytes, rows=RaxIterator, record=Pending)
    cpdef object next_claim_ms_or_none(self, Stream stream, long long idle_ms_min)
    @cython.locals(records=PendingWalk)
    cdef Rax _by_idle_time(self)

    @cython.locals(consumers=RaxIterator, consumer=Consumer)
    cpdef list consumer_counts(self)
    @cython.locals(record=Pending)
    cpdef StreamID pending_edge_or_none(self, bint last)
    @cython.locals(rows=list, whole=PendingList, records=PendingWalk, record=Pending, name=bytes)
    cpdef list pending_rows(self, StreamID start, StreamID end, long long limit, Consumer consumer=*, idle_since_ms=*)
    @cython.locals(position="long long", first=StreamID)
    cpdef object lag_or_none(self, Stream stream)
