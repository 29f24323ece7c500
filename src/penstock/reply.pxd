# Only the writer has C types: the other classes hold Python objects, and commands rarely use them.


cdef class ReplyWriter:
    cpdef int put(self, object reply) except -1
    cpdef int put_raw(self, bytes data) except -1
    cpdef int put_bulk(self, bytes data) except -1
    cpdef int put_int(self, long long number) except -1
    cpdef int put_id(self, bytes ms_text, unsigned long long seq) except -1
    cpdef int put_served(self, bytes key, object entries) except -1
    cpdef int begin_served(self, bytes key, Py_ssize_t expected) except -1
    cpdef int put_entry(self, object entry) except -1
    cpdef int end_served(self, Py_ssize_t count) except -1
