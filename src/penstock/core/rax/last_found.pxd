import cython

from penstock.core.frame cimport Frame
from penstock.core.rax.tree cimport Rax


@cython.final
cdef class LastFound:
    cdef Rax _tree
    cdef Py_ssize_t _version
    cdef bytes _key
    cdef object _value

    @cython.locals(key=bytes)
    cpdef object find_at(self, Rax tree, Frame frame, Py_ssize_t index)
    cpdef int forget(self) except -1
