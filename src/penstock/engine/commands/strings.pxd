# Typed are the functions that the quick forms use.

import cython

from penstock.core.frame cimport Frame
from penstock.engine.context cimport Context
from penstock.engine.keyspace cimport Keyspace
from penstock.engine.table cimport QuickForm
from penstock.reply cimport ReplyWriter

cdef Py_ssize_t _SET_WORDS
cdef bytes _OK
cdef long long _STRING

cpdef bytes string_or_none(Context context, bytes key)
@cython.locals(value=bytes)
cpdef bytes read_string_or_none(Context context, bytes key)
@cython.locals(is_new=bint, is_looked_up=bint, keyspace=Keyspace)
cpdef int put_string(Context context, bytes key, bytes value) except -1
cdef int _replace(Context context, bytes key, bytes value) except -1
cdef int _tell_set(Context context, bytes key) except -1


cdef class QuickGet(QuickForm):
    @cython.locals(value=bytes)
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


cdef class QuickSet(QuickForm):
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1
