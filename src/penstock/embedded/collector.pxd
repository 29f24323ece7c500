# Replies have any type; only entries and ids are read through C.

import cython

from penstock.core cimport memory
from penstock.core.stream_node cimport NodeCursor
from penstock.reply cimport ReplyWriter


cdef class Collector(ReplyWriter):
    cdef readonly object reply
    cdef readonly bint is_shaped
    cdef bytes _key
    cdef list _entries

    cpdef int begin(self) except -1
    cpdef int put(self, object reply) except -1
    cpdef int put_bulk(self, bytes data) except -1
    cpdef int put_int(self, long long number) except -1
    cpdef int put_id(self, bytes ms_text, unsigned long long seq) except -1
    cpdef int put_served(self, bytes key, object entries) except -1
    cpdef int begin_served(self, bytes key, Py_ssize_t expected) except -1
    @cython.locals(current=NodeCursor)
    cpdef int put_entry(self, object entry) except -1
    cpdef int end_served(self, Py_ssize_t count) except -1
