# Positions in a frame are Py_ssize_t, as there; lengths and limits come from clients and have 64 bits.

import cython

from penstock.core cimport spans, stream_id
from penstock.core.frame cimport Frame
from penstock.core.groups.references cimport References
from penstock.core.idempotency cimport Idempotency
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID
from penstock.engine.arguments cimport int_at
from penstock.engine.commands.streams.reference_options cimport option_at
from penstock.engine.context cimport Context
from penstock.engine.table cimport QuickForm
from penstock.reply cimport ReplyWriter

cdef unsigned char _STAR
cdef unsigned char _ZERO
cdef unsigned char _NINE
cdef unsigned char _TILDE
cdef unsigned char _EQUALS
cdef long long _TRIM_NODES_DEFAULT
cdef long long _TRIM_ENTRIES_DEFAULT
cdef long long _TRIM_ENTRIES_MAX
cdef int _BY_NOTHING
cdef int _BY_LENGTH
cdef int _BY_MIN_ID
cdef int _NO_OPTION
cdef int _DELETE
cdef int _IF_ACKED


@cython.locals(made=AddArguments)
cdef AddArguments _no_arguments()


@cython.final
cdef class AddArguments:
    cdef readonly int trim_by
    cdef readonly long long length_max
    cdef readonly StreamID min_id
    cdef readonly bint approximate
    cdef readonly long long limit
    cdef readonly bint limit_given
    cdef readonly bint no_make
    cdef readonly int references
    cdef readonly bytes producer
    cdef readonly bytes message
    cdef readonly StreamID id
    cdef readonly bint seq_given
    cdef readonly Py_ssize_t fields_at

    cdef int _reset(self) except -1
    @cython.locals(at=Py_ssize_t, more=Py_ssize_t)
    cpdef int read(self, Context context, Frame frame, bint adding) except -1
    @cython.locals(more=Py_ssize_t)
    cdef Py_ssize_t _read_trim(self, Frame frame, Py_ssize_t at, int trim_by) except -1
    cdef bint _is_producer(self, Context context, Frame frame, Py_ssize_t at, Py_ssize_t more) except -1
    cdef Py_ssize_t _read_producer(self, Frame frame, Py_ssize_t at) except -1
    @cython.locals(text=bytes)
    cdef int _read_id(self, Frame frame, Py_ssize_t at) except -1
    @cython.locals(limit="long long")
    cpdef int settle(self, bint adding, long long node_entries_max, bint replaying) except -1
    @cython.locals(removed="long long", approximate=bint, first=StreamID)
    cpdef Py_ssize_t trim(self, Stream stream, bint replaying, object garbage) except -1
    @cython.locals(at=Py_ssize_t, name=bytes)
    cdef void name_message(self, Frame frame) except *


@cython.locals(stream=Stream)
cpdef object xadd(Context context, Frame frame)


cdef class QuickAdd(QuickForm):
    @cython.locals(stream=Stream)
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


@cython.locals(found=Stream, stream=Stream, arguments=AddArguments, pieces=Py_ssize_t, wanted=StreamID, whole=StreamID,
               trimmed="long long", fields_at=Py_ssize_t, options=list, known=bytes)
cdef object _add(Context context, Frame frame)
@cython.locals(start=Py_ssize_t, end=Py_ssize_t)
cdef bint _is_whole_id(Frame frame, Py_ssize_t at) except -1
@cython.locals(found=StreamID)
cdef StreamID _whole_id(Frame frame, Py_ssize_t at)
cdef int _put_new(Context context, bytes key, Stream stream) except -1
@cython.locals(known=StreamID)
cdef bytes _known_or_none(Context context, Stream stream, AddArguments arguments, Frame frame)
cdef int _record_message(Context context, Stream stream, AddArguments arguments) except -1
cdef Idempotency _producers_of(Stream stream)
@cython.locals(wanted=StreamID)
cdef int _append(Context context, Stream stream, AddArguments arguments, Frame frame) except -1
@cython.locals(arguments=AddArguments, stream=Stream, trimmed="long long")
cpdef object xtrim(Context context, Frame frame)
@cython.locals(stream=Stream)
cpdef object xlen(Context context, Frame frame)


cdef class QuickLength(QuickForm):
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1
