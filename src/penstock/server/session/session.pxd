# Typed are the attributes and methods that every command or every turn uses.

import cython

from penstock.core.frame cimport Frame
from penstock.engine.keyspace cimport Keyspace
from penstock.server.acl.permissions cimport Permissions
from penstock.server.net.receiver cimport Receiver
from penstock.server.server cimport Server
from penstock.server.session.reply_buffer cimport ReplyBuffer
from penstock.server.stats.tally cimport Tally
from penstock.wire.encoder cimport Encoder

cdef long long _SILENT
cdef long long _NEXT
cdef long long _CLOSING


@cython.final
cdef class Session:
    cdef readonly Server server
    cdef readonly long long id
    cdef readonly object info
    cdef readonly long long active_ms
    cdef readonly Tally last
    cdef public object link
    cdef public Keyspace keyspace
    cdef readonly Receiver receiver
    cdef readonly ReplyBuffer replies
    cdef readonly Encoder output
    cdef public long long counted_bytes
    cdef public bint due
    cdef public int fd
    cdef public bint through_loop
    cdef public int keyed
    cdef public Py_ssize_t awaiting
    cdef public bint slow
    cdef public long long over_soft_since_ms
    cdef public long long state
    cdef public object user
    cdef public Permissions permissions
    cdef public object waiter
    cdef public object postponed
    cdef public object transaction
    cdef public object watching
    cdef readonly dict channels
    cdef readonly dict patterns
    cdef readonly dict shard_channels

    cpdef int reply(self, object reply) except -1
    cpdef int finish_reply(self) except -1
    cpdef int spill(self) except -1
    @cython.locals(replies=ReplyBuffer, is_plain=bint, is_next=bint)
    cpdef void flush(self) except *
    cpdef list take_replies(self)
    @cython.locals(size="long long")
    cpdef void deliver(self, list pieces) except *
