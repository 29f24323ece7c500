# The C side of tree.py. Links, positions and sizes are Py_ssize_t; heap.pxd says why.

import cython

from penstock.core cimport memory
from penstock.core.rax cimport heap as rax_heap
from penstock.core.rax.heap cimport NodeHeap, Trail

cdef Py_ssize_t _KEY
cdef Py_ssize_t _COMPRESSED
cdef Py_ssize_t _LEAF
cdef Py_ssize_t _NO_VALUE
cdef Py_ssize_t _BARE


@cython.final
cdef class Rax(NodeHeap):
    cdef readonly bint chained
    # Changes whenever the shape or a value changes; an iterator compares it with the version it remembers.
    cdef readonly Py_ssize_t version
    cdef readonly Py_ssize_t _matched
    cdef readonly Py_ssize_t _stop
    cdef readonly Py_ssize_t _link_at
    cdef readonly Py_ssize_t _split
    cdef Py_ssize_t _run
    cdef Py_ssize_t _branch_at
    cdef Py_ssize_t _branch_index
    cdef Py_ssize_t _branch_run

    cpdef object find(self, bytes key, object default=*)
    cpdef bint insert(self, bytes key, object value) except -1
    cpdef bint try_insert(self, bytes key, object value) except -1
    cpdef bint remove(self, bytes key) except -1
    cpdef object pop(self, bytes key, object default=*)
    @cython.locals(doomed=list)
    cpdef void clear(self) except *
    cpdef RaxIterator iterator(self)

    cdef bint _locate(self, bytes key) except -1
    @cython.locals(heap=bytearray, matched=Py_ssize_t, split=Py_ssize_t, link_at=Py_ssize_t, run=Py_ssize_t,
                   branch_at=Py_ssize_t, branch_index=Py_ssize_t, branch_run=Py_ssize_t, link=Py_ssize_t,
                   at=Py_ssize_t, header=Py_ssize_t, size=Py_ssize_t, index=Py_ssize_t, fork=bint)
    cdef int _walk(self, bytes key, Trail trail) except -1
    @cython.locals(rest=Py_ssize_t, cells=Py_ssize_t, header=Py_ssize_t, slot=Py_ssize_t, link=Py_ssize_t)
    cdef int _add(self, bytes key, object value) except -1
    @cython.locals(slot=Py_ssize_t)
    cdef int _replace(self, object value) except -1
    @cython.locals(heap=bytearray, matched=Py_ssize_t, at=Py_ssize_t, header=Py_ssize_t, before=Py_ssize_t,
                   after=Py_ssize_t, old_slot=Py_ssize_t, old_link=Py_ssize_t, new_link=Py_ssize_t, tail=Py_ssize_t,
                   fork=Py_ssize_t, front=Py_ssize_t, link=Py_ssize_t, old_first=bint)
    cdef int _split_where_they_differ(self, bytes key, Py_ssize_t slot) except -1
    @cython.locals(heap=bytearray, at=Py_ssize_t, header=Py_ssize_t, before=Py_ssize_t, after=Py_ssize_t,
                   tail=Py_ssize_t, front=Py_ssize_t)
    cdef int _split_where_it_ends(self, Py_ssize_t slot) except -1
    @cython.locals(slot=Py_ssize_t, chain_at=Py_ssize_t, is_last=bint)
    cdef object _detach(self)
    cdef void _empty(self) except *
    @cython.locals(heap=bytearray, at=Py_ssize_t, header=Py_ssize_t, link=Py_ssize_t, doomed=Py_ssize_t,
                   below=Py_ssize_t)
    cdef int _prune(self) except -1


@cython.final
cdef class RaxIterator:
    cdef readonly Rax rax
    cdef readonly bytes key
    cdef readonly object value
    cdef public object on_node
    cdef Trail _trail
    cdef bytearray _path
    cdef Py_ssize_t _size
    cdef Py_ssize_t _here
    cdef Py_ssize_t _version
    cdef bint _somewhere
    cdef bint _fresh

    @cython.locals(found=bint)
    cpdef bint seek(self, str op, bytes key=*) except -1
    cpdef bint next(self) except -1
    cpdef bint previous(self) except -1
    cdef bint _resume(self, str op) except -1
    @cython.locals(slot=Py_ssize_t)
    cdef bint _arrive(self, bint found) except -1
    cdef bint _is_key(self) except -1
    @cython.locals(header=Py_ssize_t)
    cdef Py_ssize_t _children(self) except -1
    cdef bint _is_at(self, bytes key) except -1
    @cython.locals(rax=Rax)
    cdef int _go_to(self, bytes key) except -1
    @cython.locals(matched=Py_ssize_t, split=Py_ssize_t, at=Py_ssize_t, header=Py_ssize_t, is_above=bint)
    cdef bint _go_above(self, bytes key) except -1
    @cython.locals(matched=Py_ssize_t, split=Py_ssize_t, at=Py_ssize_t)
    cdef bint _go_below(self, bytes key) except -1
    cdef bint _go_on(self) except -1
    cdef bint _go_past(self) except -1
    @cython.locals(trail=Trail, heap=bytearray, frame=Py_ssize_t, at=Py_ssize_t, header=Py_ssize_t,
                   size=Py_ssize_t, index=Py_ssize_t)
    cdef bint _go_aside(self) except -1
    @cython.locals(index=Py_ssize_t)
    cdef bint _go_back(self) except -1
    cdef int _go_last(self) except -1
    @cython.locals(heap=bytearray, at=Py_ssize_t, header=Py_ssize_t, size=Py_ssize_t, first=Py_ssize_t,
                   links=Py_ssize_t)
    cdef int _enter(self, Py_ssize_t index) except -1
    @cython.locals(trail=Trail, header=Py_ssize_t)
    cdef Py_ssize_t _leave(self) except -1
    cdef int _tell(self) except -1


@cython.locals(high=Py_ssize_t, found=Py_ssize_t, low=Py_ssize_t, middle=Py_ssize_t)
cdef Py_ssize_t _find_child(bytearray heap, Py_ssize_t at, Py_ssize_t size, Py_ssize_t char) except? -1
