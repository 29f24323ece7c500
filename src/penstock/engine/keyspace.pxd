# The dictionary holds values of every type; only streams are remembered between calls.

import cython

from penstock.core cimport memory
from penstock.core.frame cimport Frame
from penstock.core.stream cimport NodeLimits, Stream


@cython.final
cdef class Keyspace:
    cdef readonly NodeLimits limits
    cdef readonly dict values
    cdef bytes _last_key
    cdef Stream _last_stream

    cpdef Stream stream_or_none(self, bytes key)
    @cython.locals(key=bytes, start=Py_ssize_t, size=Py_ssize_t)
    cpdef Stream stream_at(self, Frame frame, Py_ssize_t index)
    cpdef Stream new_stream(self)
    cpdef void put(self, bytes key, Stream stream) except *
