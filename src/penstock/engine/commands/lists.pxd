# Only pushes and pops have C types: a queue uses nothing else.

import cython

from penstock.core.frame cimport Frame
from penstock.core.list_value cimport ListValue
from penstock.engine.context cimport Context

cpdef object lpush(Context context, Frame frame)
cpdef object rpush(Context context, Frame frame)
@cython.locals(key=bytes, found=ListValue, value=ListValue, at=Py_ssize_t)
cdef object _push(Context context, Frame frame, bint left)
cpdef object put_new(Context context, bytes key, ListValue value)
cpdef object lpop(Context context, Frame frame)
cpdef object rpop(Context context, Frame frame)
@cython.locals(key=bytes, value=ListValue)
cdef object _pop(Context context, Frame frame, bint left)
@cython.locals(taken=list, last=Py_ssize_t, count=Py_ssize_t)
cpdef list pop_many(Context context, bytes key, ListValue value, bint left, Py_ssize_t most)
cpdef object pop_one(Context context, bytes key, ListValue value, bint left)
cpdef object popped(Context context, bytes key, ListValue value, bint left, Py_ssize_t count)
cdef object _remove_if_empty(Context context, bytes key, ListValue value)
