# The C side of cutting.py. Links and positions are Py_ssize_t; heap.pxd says why.

import cython

from penstock.core cimport memory
from penstock.core.rax cimport heap as rax_heap
from penstock.core.rax.tree cimport Rax, RaxIterator

cdef Py_ssize_t _COMPRESSED
cdef Py_ssize_t _LEAF
cdef Py_ssize_t _NO_VALUE


@cython.locals(values=list)
cpdef list take_values(Rax rax)
@cython.locals(values=list, found=RaxIterator, first=bytes, common=Py_ssize_t, size=Py_ssize_t)
cpdef list cut_below(Rax rax, bytes key)
@cython.locals(size=Py_ssize_t, common=Py_ssize_t)
cdef Py_ssize_t _common(bytes first, bytes second) except -1
@cython.locals(heap=bytearray, branches=list, link=Py_ssize_t, slot=Py_ssize_t, header=Py_ssize_t,
               child_at=Py_ssize_t, child=Py_ssize_t)
cdef int _shrink(Rax rax, Py_ssize_t link_at, list values) except -1
