import cython

from penstock.core cimport listpack
from penstock.core.groups.consumer cimport Consumer
from penstock.core.groups.group cimport Group
from penstock.core.groups.pending_list cimport PendingList, PendingWalk
from penstock.core.groups.records cimport Pending
from penstock.core.idempotency cimport Idempotency
from penstock.core.rax.tree cimport RaxIterator
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID
from penstock.persist.rdb.output cimport RdbOutput

cdef int _STREAM_3
cdef int _STREAM_4
cdef int _STREAM_5
cdef bytes _NOBODYS_NAME

# Only functions that run once per node, per pending record or per name are typed; the rest run per key.
@cython.locals(nodes=RaxIterator, groups=RaxIterator, node=bytearray)
cdef int _write_stream(RdbOutput output, Stream stream, int kind) except -1
@cython.locals(consumers=RaxIterator, consumer=Consumer)
cdef int _write_group(RdbOutput output, Group group, int kind) except -1
@cython.locals(nobody=Consumer)
cdef void _begin_consumers_with_nobody(RdbOutput output, Group group, int kind) except *
cdef int _write_consumer(RdbOutput output, Consumer consumer, int kind) except -1
@cython.locals(records=PendingWalk, record=Pending)
cdef int _write_pending(RdbOutput output, PendingList pending) except -1
@cython.locals(records=PendingWalk)
cdef int _write_owned(RdbOutput output, PendingList pending) except -1
@cython.locals(key=bytes)
cdef int _write_keys(RdbOutput output, list keys) except -1
@cython.locals(known=Idempotency, producer=bytes, name=bytes, entry_id=StreamID)
cdef int _write_producers(RdbOutput output, Stream stream) except -1
cdef int _write_id(RdbOutput output, StreamID entry_id) except -1
