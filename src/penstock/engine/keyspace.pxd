# The dictionary holds values of every type; only the last stream is cached between calls.

import cython

from penstock.core.frame cimport Frame
from penstock.core.list_value cimport ListLimits, ListValue
from penstock.core.stream cimport NodeLimits, Stream
from penstock.engine.clock cimport Instant
from penstock.engine.key_map cimport KeyMap


@cython.final
cdef class Keyspace:
    cdef readonly Py_ssize_t index
    cdef readonly NodeLimits limits
    cdef readonly ListLimits list_limits
    cdef readonly object garbage
    cdef readonly KeyMap values
    cdef readonly KeyMap expires
    cdef readonly dict watches
    cdef readonly dict awaited
    cdef public object on_expired
    cdef list _due
    cdef Instant _instant
    cdef bytes _last_key
    cdef Stream _last_stream

    cpdef object find(self, bytes key)
    cpdef Stream stream_or_none(self, bytes key)
    @cython.locals(key=bytes, stream=Stream)
    cpdef Stream stream_at(self, Frame frame, Py_ssize_t index)
    cpdef bint is_awaited_at(self, Frame frame, Py_ssize_t index) except -1
    cpdef Stream new_stream(self)
    cpdef ListValue list_or_none(self, bytes key)
    cpdef ListValue new_list(self)
    cpdef int put(self, bytes key, object value) except -1
    cpdef object remove(self, bytes key)
    cpdef bint clear_expiry(self, bytes key) except -1
    cpdef void swap_with(self, Keyspace other) except *
