# The C side of heap.py.
#
# Positions, links, headers and slots are all Py_ssize_t, although 32 bits are stored: 4 * link would wrap in
# 32 bits above 4 GiB, and -1 means "none" in several of them.

import cython

from penstock.core cimport memory

cdef Py_ssize_t _KEY
cdef Py_ssize_t _NULL
cdef Py_ssize_t _COMPRESSED
cdef Py_ssize_t _LEAF
cdef Py_ssize_t _NO_VALUE
cdef Py_ssize_t _BARE
cdef Py_ssize_t _HEAP_CELLS_MAX
cdef Py_ssize_t _SPARE_CELLS_MAX
cdef Py_ssize_t _SPARE_SLOTS_MAX
cdef Py_ssize_t _TIDY_CELLS_MIN
cdef Py_ssize_t _TIDY_SLOTS_MIN
cdef Py_ssize_t _COPY_KEYS_MAX
cdef Py_ssize_t _SHED_MAX
cdef Py_ssize_t _LISTS_AT_ONCE
cdef bytearray _NO_BYTES
cdef list _NO_VALUES


@cython.final
cdef class Trail:
    cdef readonly Py_ssize_t depth
    cdef readonly bytearray frames

    cdef int push(self, Py_ssize_t node, Py_ssize_t index) except -1


cdef class NodeHeap:
    cdef readonly bytearray heap
    cdef readonly bytearray free
    cdef readonly bytearray free_slots
    cdef readonly list values
    cdef readonly list doomed
    cdef readonly Py_ssize_t characters_max
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t node_count
    cdef readonly Py_ssize_t top
    cdef readonly Py_ssize_t live
    cdef readonly Py_ssize_t slots_free

    @cython.locals(header=Py_ssize_t)
    cdef Py_ssize_t _slot(self, Py_ssize_t link) except? -1
    cdef Py_ssize_t _cells(self, Py_ssize_t link) except -1
    @cython.locals(cells=Py_ssize_t, at=Py_ssize_t)
    cdef Py_ssize_t _node(self, Py_ssize_t header, Py_ssize_t slot) except -1
    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t _single(self, Py_ssize_t size, Py_ssize_t slot, Py_ssize_t child) except -1
    @cython.locals(at=Py_ssize_t, place=Py_ssize_t)
    cdef Py_ssize_t _move_to_fit(self, Py_ssize_t link_at, Py_ssize_t before, Py_ssize_t after) except -1
    cdef int _set_slot(self, Py_ssize_t link_at, Py_ssize_t slot) except -1
    @cython.locals(heap=bytearray, at=Py_ssize_t, header=Py_ssize_t, before=Py_ssize_t, after=Py_ssize_t,
                   place=Py_ssize_t)
    cdef int _set_slot_of_node(self, Py_ssize_t link_at, Py_ssize_t slot) except -1
    @cython.locals(heap=bytearray, at=Py_ssize_t, header=Py_ssize_t, size=Py_ssize_t, cells=Py_ssize_t,
                   links=Py_ssize_t, words=Py_ssize_t, place=Py_ssize_t, new_links=Py_ssize_t)
    cdef int _add_child(self, Py_ssize_t link_at, Py_ssize_t index, Py_ssize_t char, Py_ssize_t child) except -1
    @cython.locals(heap=bytearray, at=Py_ssize_t, header=Py_ssize_t, size=Py_ssize_t, cells=Py_ssize_t,
                   links=Py_ssize_t, words=Py_ssize_t, place=Py_ssize_t, new_links=Py_ssize_t)
    cdef int _remove_child(self, Py_ssize_t link_at, Py_ssize_t index) except -1

    @cython.locals(size=Py_ssize_t, full=Py_ssize_t, first=Py_ssize_t, at=Py_ssize_t)
    cdef Py_ssize_t _chain(self, bytes key, Py_ssize_t start, Py_ssize_t slot, Py_ssize_t tip) except -1
    @cython.locals(heap=bytearray, link=Py_ssize_t, size=Py_ssize_t, nodes=Py_ssize_t, header=Py_ssize_t,
                   fork=bint)
    cdef int _compress(self, Py_ssize_t link_at) except -1
    @cython.locals(heap=bytearray, first=Py_ssize_t, link=Py_ssize_t, header=Py_ssize_t, merged=Py_ssize_t)
    cdef int _merge(self, Py_ssize_t link_at, Py_ssize_t nodes, Py_ssize_t size, Py_ssize_t tip) except -1

    cdef int _start(self) except -1
    cdef int _drop(self) except -1
    cdef bint _is_small(self) noexcept
    @cython.locals(place=Py_ssize_t)
    cdef int _reset(self) except -1
    @cython.locals(missing=Py_ssize_t, more=Py_ssize_t)
    cdef int _reserve(self, Py_ssize_t cells) except -1
    @cython.locals(place=Py_ssize_t, at=Py_ssize_t)
    cdef Py_ssize_t _take(self, Py_ssize_t cells) except -1
    @cython.locals(place=Py_ssize_t, lists=Py_ssize_t)
    cdef int _give(self, Py_ssize_t at, Py_ssize_t cells) except -1
    @cython.locals(slot=Py_ssize_t)
    cdef Py_ssize_t _keep(self, object value) except -1
    cdef int _reserve_release(self) except -1
    cdef object _release(self, Py_ssize_t slot)
    cdef object _value(self, Py_ssize_t slot)
    @cython.locals(slots=Py_ssize_t)
    cdef int _tidy(self) except -1
    cdef int _shed(self) except -1
    @cython.locals(old=bytearray, heap=bytearray, values=list, top=Py_ssize_t, scan=Py_ssize_t,
                   link_at=Py_ssize_t, links=Py_ssize_t, link=Py_ssize_t, cells=Py_ssize_t,
                   header=Py_ssize_t, slot=Py_ssize_t)
    cdef int _copy(self) except -1


cdef Py_ssize_t _key_bits(Py_ssize_t slot) noexcept
@cython.locals(size=Py_ssize_t, links=Py_ssize_t)
cpdef Py_ssize_t cells_of(Py_ssize_t header) noexcept
cpdef Py_ssize_t links_of(Py_ssize_t at, Py_ssize_t size) noexcept
@cython.locals(shift=int)
cdef Py_ssize_t _free_list(Py_ssize_t cells) noexcept
@cython.locals(shift=int)
cpdef Py_ssize_t block_cells(Py_ssize_t cells) noexcept
