import cython

from penstock.core cimport listpack
from penstock.core.groups.group cimport Consumer, Group, Pending
from penstock.core.rax.tree cimport Rax, RaxIterator
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID
from penstock.persist.rdb.output cimport RdbOutput

# Only functions that run once per node or per pending record are typed; the rest run per key.
@cython.locals(nodes=RaxIterator, groups=RaxIterator, node=bytearray)
cdef int _write_stream(RdbOutput output, Stream stream, bint with_activity) except -1
@cython.locals(consumers=RaxIterator, consumer=Consumer)
cdef int _write_group(RdbOutput output, Group group, bint with_activity) except -1
@cython.locals(records=RaxIterator, record=Pending)
cdef int _write_pending(RdbOutput output, Rax pending) except -1
@cython.locals(records=RaxIterator)
cdef int _write_owned(RdbOutput output, Rax pending) except -1
cdef int _write_id(RdbOutput output, StreamID entry_id) except -1
