# Only what lookups and single changes use is typed; the walks are rare.

import cython

cdef Py_ssize_t _DEPTH_MAX


@cython.final
cdef class KeyMap:
    cdef readonly Py_ssize_t count
    cdef readonly list directory
    cdef readonly list depths
    cdef Py_ssize_t _bits
    cdef Py_ssize_t _shift
    cdef Py_ssize_t _mask
    cdef Py_ssize_t _small
    cdef readonly Py_ssize_t segment_max
    cdef object _scanned

    cpdef object get(self, bytes key, object default=*)
    @cython.locals(segment=dict, before=Py_ssize_t)
    cpdef void put(self, bytes key, object value) except *
    @cython.locals(segment=dict, before=Py_ssize_t)
    cpdef object pop(self, bytes key, object default=*)
    @cython.locals(number=Py_ssize_t)
    cdef dict _segment(self, bytes key)
