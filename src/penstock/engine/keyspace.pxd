import cython

from penstock.core.stream cimport NodeLimits, Stream


cdef class Keyspace:
    cdef readonly NodeLimits limits
    cdef readonly dict values

    cpdef Stream stream_or_none(self, bytes key)
    @cython.locals(stream=Stream)
    cpdef Stream add_stream(self, bytes key)
