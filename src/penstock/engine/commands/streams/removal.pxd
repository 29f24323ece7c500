import cython

from penstock.core.frame cimport Frame
from penstock.core.groups.group cimport Group
from penstock.core.groups.references cimport References
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID
from penstock.engine.commands.streams.groups cimport group_or_none
from penstock.engine.commands.streams.reference_options cimport option_at
from penstock.engine.context cimport Context
from penstock.engine.table cimport QuickForm
from penstock.reply cimport ReplyWriter

@cython.locals(stream=Stream, ids=list, removed="long long", entry_id=StreamID)
cpdef object xdel(Context context, Frame frame)


cdef class QuickDelete(QuickForm):
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


cdef class RemovalArguments:
    cdef readonly int references
    cdef readonly Py_ssize_t first
    cdef readonly long long count


@cython.locals(stream=Stream, arguments=RemovalArguments, ids=list, references=References, entry_id=StreamID,
               removed="long long", forgotten="long long")
cpdef object xdelex(Context context, Frame frame)
@cython.locals(stream=Stream, arguments=RemovalArguments, group=Group, ids=list, references=References,
               entry_id=StreamID, removed="long long", acknowledged="long long")
cpdef object xackdel(Context context, Frame frame)
cdef int _report(Context context, Frame frame, long long removed) except -1
