# Only pushes and pops have C types: a queue uses nothing else.

import cython

from penstock.core.frame cimport Frame
from penstock.core.list_value cimport ListValue
from penstock.engine.context cimport Context
from penstock.engine.table cimport QuickForm
from penstock.reply cimport ReplyWriter

cdef long long _LIST
cdef Py_ssize_t _POP_WORDS


cdef class QuickPush(QuickForm):
    cdef bint left

    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


cdef class QuickPop(QuickForm):
    cdef bint left

    @cython.locals(key=bytes, value=ListValue, element=bytes)
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


cpdef object lpush(Context context, Frame frame)
cpdef object rpush(Context context, Frame frame)
@cython.locals(key=bytes, found=ListValue, value=ListValue, at=Py_ssize_t)
cdef long long _push(Context context, Frame frame, bint left) except -1
cpdef bytes push_event(bint left)
cpdef object put_new(Context context, bytes key, ListValue value)
cpdef object lpop(Context context, Frame frame)
cpdef object rpop(Context context, Frame frame)
@cython.locals(key=bytes, value=ListValue)
cdef object _pop(Context context, Frame frame, bint left)
@cython.locals(taken=list, last=Py_ssize_t, count=Py_ssize_t)
cpdef list pop_many(Context context, bytes key, ListValue value, bint left, Py_ssize_t most)
cpdef bytes pop_one(Context context, bytes key, ListValue value, bint left)
cpdef int popped(Context context, bytes key, ListValue value, bint left, Py_ssize_t count) except -1
cdef int _remove_if_empty(Context context, bytes key, ListValue value) except -1
