# Not final: the journal is a subclass in another module, called through C.

from penstock.core.frame cimport Frame
from penstock.core.groups.group cimport Group
from penstock.core.stream cimport Stream


cdef class EffectSink:
    cpdef int begin(self) except -1
    cpdef int end(self) except -1
    cpdef int abandon(self) except -1
    cpdef int verbatim(self, Py_ssize_t database, Frame frame) except -1
    cpdef int words(self, Py_ssize_t database, list words) except -1
    cpdef int added(self, Py_ssize_t database, Frame frame, Py_ssize_t fields_at, Stream stream, list options) except -1
    cpdef int delivered(self, Py_ssize_t database, tuple names, Group group, list ids,
                        long long when_ms) except -1
