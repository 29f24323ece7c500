# `allows` runs before every command of a user with limited rights.

import cython

from penstock.core cimport spans
from penstock.core.frame cimport Frame
from penstock.core.glob cimport Glob
from penstock.engine.table cimport Command

cdef Py_ssize_t _KEPT_BYTES_MAX


@cython.final
cdef class Denial:
    cdef readonly int reason
    cdef readonly Py_ssize_t at


@cython.final
cdef class Places:
    cdef list channels
    cdef list patterns
    cdef list keys
    cdef Py_ssize_t group_at


@cython.final
cdef class Rights:
    cdef frozenset commands
    cdef dict first_words
    cdef bint all_keys
    cdef list keys
    cdef bint all_channels
    cdef list channels
    cdef list groups

    @cython.locals(at=Py_ssize_t, need=int)
    cdef Denial denial_or_none(self, Command command, Frame frame, Places places)
    cdef bint _has_command(self, Command command, Frame frame) except -1
    cdef bint _has_group(self, bytes name) except -1
    @cython.locals(glob=Glob, allowed=int)
    cdef bint _has_key(self, bytes key, int need) except -1
    cpdef bint has_channel(self, bytes name) except -1
    @cython.locals(glob=Glob)
    cpdef bint has_pattern(self, bytes pattern) except -1


@cython.locals(glob=Glob)
cdef bint _is_matched(list globs, bytes name) except -1


@cython.final
cdef class Allowed:
    cdef Command command
    cdef list words
    cdef Py_ssize_t count


@cython.final
cdef class Permissions:
    cdef list rights
    cdef dict _allowed
    cdef Allowed _last

    @cython.locals(last=Allowed, words=list, at=Py_ssize_t)
    cpdef bint allows(self, Command command, Frame frame) except -1
    cdef bint _judge(self, Command command, Frame frame) except -1
    @cython.locals(places=Places, worst=Denial, rights=Rights, denial=Denial)
    cpdef Denial denial_or_none(self, Command command, Frame frame)
    @cython.locals(rights=Rights, count=Py_ssize_t, words=list)
    cdef void _remember(self, Command command, Frame frame) except *
    cdef void _keep(self, Allowed allowed) except *
    @cython.locals(rights=Rights)
    cpdef bint allows_channel(self, bytes name) except -1
    @cython.locals(rights=Rights)
    cpdef bint allows_pattern(self, bytes pattern) except -1
