# Only functions that run for every entry have C types.

import cython

from penstock.core cimport stream_id
from penstock.core.frame cimport Frame
from penstock.core.groups.group cimport Group
from penstock.core.groups.consumer cimport Consumer
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID
from penstock.engine.context cimport Context
from penstock.engine.table cimport QuickForm
from penstock.reply cimport ReplyWriter

cdef Py_ssize_t _WORDS_OF_ONE_ACK

@cython.locals(group=Group)
cpdef Group group_or_none(Stream stream, bytes name)
@cython.locals(stream=Stream, group=Group, acknowledged="long long", key=bytes, at=Py_ssize_t)
cpdef Py_ssize_t xack(Context context, Frame frame) except -1


cdef bytes _id_key_at(Frame frame, Py_ssize_t index)


cdef class QuickAck(QuickForm):
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


cpdef Consumer make_consumer(Context context, bytes key, Group group, bytes name)
