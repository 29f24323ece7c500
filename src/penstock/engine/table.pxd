# `run` is called as a Python object, because some functions are interpreted.

import cython

from penstock.core.frame cimport Frame
from penstock.engine.context cimport Context
from penstock.reply cimport ReplyWriter


cdef class QuickForm:
    cpdef bint run(self, Context context, Frame frame, ReplyWriter reply) except -1


@cython.final
cdef class Command:
    cdef readonly str name
    cdef readonly QuickForm quick
    cdef readonly object run
    cdef readonly Py_ssize_t arity
    cdef readonly long long flags
    cdef readonly tuple keys
    cdef readonly str summary
    cdef readonly str syntax
    cdef readonly str since
    cdef readonly str complexity
    cdef readonly str group
    cdef readonly object find_keys
    cdef readonly bint in_session
    cdef readonly bint is_newer
    cdef readonly tuple access
    cdef readonly object find_access
    cdef readonly tuple channels
    cdef readonly tuple patterns
    cdef readonly Py_ssize_t group_at
    cdef readonly object find_group

    cpdef bint takes(self, Py_ssize_t words) noexcept
