# Positions in the buffer are Py_ssize_t. Replies are Python objects of many types: only ranges have C types.

import cython

from penstock.core cimport memory
from penstock.core.stream_cursor cimport EntryCursor, EntryRange
from penstock.core.stream_node cimport NodeCursor
from penstock.reply cimport ReplyWriter

cdef Py_ssize_t _FIRST_BYTES
cdef Py_ssize_t _KEEP_BYTES_MAX
cdef unsigned char _ARRAY
cdef unsigned char _BULK
cdef unsigned char _NUMBER
cdef unsigned char _STATUS
cdef unsigned char _ERROR
cdef unsigned char _MAP
cdef unsigned char _PUSH
cdef unsigned char _SET
cdef unsigned char _VERBATIM
cdef unsigned char _DOUBLE
cdef Py_ssize_t _HEAD_BYTES_MAX
cdef Py_ssize_t _ID_BYTES_MAX
cdef Py_ssize_t _ID_ROOM
cdef unsigned short _CRLF


# Not final: Cython would take the methods that it overrides for final ones.
cdef class Encoder(ReplyWriter):
    cdef readonly bytearray buffer
    cdef readonly Py_ssize_t size
    cdef public bint resp3
    cdef unsigned long long _ms
    cdef bytearray _ms_text
    cdef Py_ssize_t _head_at
    cdef Py_ssize_t _body_at

    cpdef bytes take(self)
    cpdef void clear(self) except *
    cpdef void cut_back(self, Py_ssize_t size) except *
    cpdef int put(self, object reply) except -1
    cdef int _put_rare(self, object reply) except -1
    cpdef void put_error(self, object error) except *
    cpdef int put_array_head(self, Py_ssize_t count) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int put_raw(self, bytes data) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int put_bulk(self, bytes data) except -1
    cpdef int put_int(self, long long number) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int put_id(self, bytes ms_text, unsigned long long seq) except -1
    cpdef int put_served(self, bytes key, object entries) except -1
    cpdef int begin_served(self, bytes key, Py_ssize_t expected) except -1
    cpdef int put_entry(self, object entry) except -1
    cpdef int end_served(self, Py_ssize_t count) except -1
    cdef inline Py_ssize_t _room(self, Py_ssize_t size) except -1
    @cython.locals(missing=Py_ssize_t)
    cdef void _grow(self, Py_ssize_t size) except *
    @cython.locals(at=Py_ssize_t, buffer=bytearray)
    cdef int _put_head(self, unsigned char kind, long long number) except -1
    @cython.locals(at=Py_ssize_t, size=Py_ssize_t, buffer=bytearray)
    cdef int _put_sized(self, unsigned char kind, bytes data) except -1
    @cython.locals(at=Py_ssize_t, size=Py_ssize_t)
    cdef int _put_line(self, unsigned char kind, bytes text) except -1
    cdef int _put_items(self, unsigned char kind, object items) except -1
    cdef int _put_pairs(self, object pairs) except -1
    cdef int _put_served(self, object served) except -1
    cdef int _put_stream(self, bytes key, object entries) except -1
    @cython.locals(limit="long long", expected="long long", count="long long", cursor=EntryCursor)
    cdef int _put_range(self, EntryRange entries) except -1
    cdef int _begin_entries(self, Py_ssize_t expected) except -1
    @cython.locals(start=Py_ssize_t, behind=Py_ssize_t, buffer=bytearray)
    cdef int _end_entries(self, Py_ssize_t count) except -1
    @cython.locals(fields=Py_ssize_t, at=Py_ssize_t, names_at=Py_ssize_t)
    cdef int _put_current(self, NodeCursor entry) except -1
    @cython.locals(entry=NodeCursor, node=bytearray, fields=Py_ssize_t, names_at=Py_ssize_t, alone=bint,
                   ms="unsigned long long", seq="unsigned long long", place=Py_ssize_t, pieces_at=Py_ssize_t,
                   room=Py_ssize_t, count=Py_ssize_t, at=Py_ssize_t, found=Py_ssize_t)
    cdef Py_ssize_t _put_run(self, EntryCursor cursor, long long most) except -1
