# Positions in a frame are Py_ssize_t, as there; a count comes from a client and has 64 bits.

import cython

from penstock.core cimport stream_id
from penstock.core.frame cimport Frame
from penstock.core.stream cimport Stream
from penstock.core.stream_cursor cimport EntryRange
from penstock.core.stream_id cimport StreamID
from penstock.engine.arguments cimport int_at
from penstock.engine.context cimport Context
from penstock.engine.table cimport QuickForm
from penstock.reply cimport ReplyWriter

cdef long long _NO_COUNT

cpdef object xrange(Context context, Frame frame)
cpdef object xrevrange(Context context, Frame frame)
@cython.locals(start=StreamID, end=StreamID, count="long long", at=Py_ssize_t, stream=Stream)
cdef object _range(Context context, Frame frame, bint reverse)


cdef class QuickRange(QuickForm):
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


cdef class QuickReverseRange(QuickForm):
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1
