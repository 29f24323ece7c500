from penstock.core.frame cimport Frame
from penstock.engine.context cimport Context
from penstock.engine.table cimport QuickForm
from penstock.reply cimport ReplyWriter

cdef bytes _PONG_LINE


cdef class QuickPing(QuickForm):
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1
