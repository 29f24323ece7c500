import cython

from penstock.core cimport listpack, memory, stream_id, stream_node
from penstock.core.groups.consumer cimport Consumer
from penstock.core.groups.group cimport Group
from penstock.core.groups.pending_list cimport PendingList
from penstock.core.groups.records cimport Pending, made_pending
from penstock.core.rax.tree cimport Rax
from penstock.core.stream cimport NodeLimits, Stream
from penstock.core.stream_id cimport StreamID
from penstock.persist.rdb cimport node_check
from penstock.persist.rdb.input cimport RdbInput

cdef Py_ssize_t _KEY_BYTES
cdef int _STREAM_2
cdef int _STREAM_3
cdef int _STREAM_4
cdef int _STREAM_5
cdef int _NOBODY
cdef bytes _NO_ENTRY
cdef unsigned long long _COUNT_MAX
cdef unsigned char _END
cdef Py_ssize_t _SMALLEST_NODE_BYTES

# Only functions that run once per node, per pending record or per name are typed; the rest run per stream or
# group.
@cython.locals(previous=StreamID, last=StreamID, rising=bint, master=StreamID, key=bytes, node=bytearray, live="long long", start=Py_ssize_t,
               number=Py_ssize_t)
cdef StreamID _read_nodes(RdbInput source, Stream stream, bint deep)
@cython.locals(size=Py_ssize_t, at=Py_ssize_t)
cpdef int check_head(bytearray node) except -1
@cython.locals(pending=PendingList, left=Py_ssize_t, key=bytes, delivery_ms="long long", count="unsigned long long",
               ms="unsigned long long", seq="unsigned long long")
cdef int _read_pending(RdbInput source, Group group) except -1
@cython.locals(count=Py_ssize_t, left=Py_ssize_t, key=bytes, record=Pending)
cdef Py_ssize_t _read_rows(RdbInput source, Group group, Consumer consumer) except -1
@cython.locals(count=Py_ssize_t, left=Py_ssize_t, key=bytes, record=Pending)
cdef Py_ssize_t _read_returned(RdbInput source, Group group) except -1
@cython.locals(start=Py_ssize_t, count=Py_ssize_t, left=Py_ssize_t, name=bytes, entry_id=StreamID)
cdef object _read_names(RdbInput source, bytes producer, Py_ssize_t size_max)
