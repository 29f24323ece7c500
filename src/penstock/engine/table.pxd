# `run` is called as a Python object: a row must hold interpreted functions too.

import cython


@cython.final
cdef class Command:
    cdef readonly str name
    cdef readonly object run
    cdef readonly Py_ssize_t arity
    cdef readonly object flags
    cdef readonly Py_ssize_t key_at
    cdef readonly str summary

    cpdef bint takes(self, Py_ssize_t words) noexcept
