# Positions in a frame are Py_ssize_t, as there; counts and times come from clients and have 64 bits.

import cython

from penstock.core cimport stream_id
from penstock.core.frame cimport Frame
from penstock.core.groups.group cimport Group
from penstock.core.groups.consumer cimport Consumer
from penstock.core.stream cimport Stream
from penstock.core.stream_cursor cimport EntryCursor, EntryRange
from penstock.core.stream_id cimport StreamID
from penstock.engine.commands.streams.deliveries cimport Deliveries
from penstock.engine.commands.streams.groups cimport group_or_none, make_consumer
from penstock.engine.commands.streams.read_arguments cimport ReadArguments, ReadBudget, read_arguments
from penstock.engine.context cimport Context
from penstock.engine.table cimport QuickForm
from penstock.reply cimport ReplyWriter

cdef StreamID _NEW
cdef unsigned char _LAST
cdef unsigned char _DOLLAR
cdef unsigned char _GREATER
cdef long long _NEVER

@cython.locals(arguments=ReadArguments, ids=list, served=list)
cpdef object xread(Context context, Frame frame)


cdef class QuickRead(QuickForm):
    @cython.locals(arguments=ReadArguments, ids=list, served=list, key=bytes)
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


@cython.locals(ids=list, index=Py_ssize_t, key_at=Py_ssize_t, stream=Stream)
cdef list _read_ids(Context context, Frame frame, ReadArguments arguments)
@cython.locals(index=Py_ssize_t, stream=Stream, served=list, key=bytes, budget=ReadBudget, count="long long",
               after=StreamID)
cdef list _served_after(Context context, Frame frame, ReadArguments arguments, list ids)
cdef Stream _stream_to_read(Context context, bytes key)
cdef StreamID _read_id(Context context, Frame frame, Py_ssize_t at, Stream stream)
@cython.locals(again=Frame, keys=list, at=Py_ssize_t, index=Py_ssize_t)
cdef object _block_or_nothing(Context context, Frame frame, ReadArguments arguments, list ids)
@cython.locals(arguments=ReadArguments, groups=list, ids=list, index=Py_ssize_t, key_at=Py_ssize_t,
               stream=Stream, served=list, key=bytes, group_name=bytes, budget=ReadBudget)
cpdef object xreadgroup(Context context, Frame frame)


cdef class QuickReadGroup(QuickForm):
    @cython.locals(arguments=ReadArguments, at=Py_ssize_t, key=bytes, stream=Stream, group=Group, reader=Consumer,
                   now_ms="long long", ids=list)
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


@cython.locals(stream=Stream, group=Group)
cdef Group _group_of(Context context, bytes key, bytes name)
cdef bint _is_new(StreamID after) except -1
cdef StreamID _group_read_id(Context context, Frame frame, Py_ssize_t at)
@cython.locals(stream=Stream, now_ms="long long", consumer=Consumer, reader=Consumer, found=EntryRange,
               count="long long", budget=ReadBudget)
cdef object _serve_group(Context context, bytes key, Group group, StreamID after,
                         ReadArguments arguments)
cdef int _note_delivery(Context context, Consumer reader, ReadArguments arguments) except -1
cdef object _claim_and_deliver(Context context, bytes key, Group group, Consumer reader,
                               ReadArguments arguments)
@cython.locals(consumer=Consumer)
cdef Consumer _consumer_of(Context context, bytes key, Group group, ReadArguments arguments)
cdef Consumer _made_consumer(Context context, bytes key, Group group, ReadArguments arguments)
cdef Deliveries _deliveries(Context context, bytes key, Group group, ReadArguments arguments)
@cython.locals(deliveries=Deliveries)
cdef int _record_delivery(Context context, bytes key, Group group, ReadArguments arguments,
                          list ids) except -1
@cython.locals(ids=list, cursor=EntryCursor)
cdef list _ids_of(EntryRange found)
