# Places in the buffer are Py_ssize_t. `size` is read by whoever ends a turn, once a turn.

import cython

from penstock.core cimport memory
from penstock.core.frame cimport Frame
from penstock.core.groups.group cimport Group
from penstock.core.stream cimport Stream
from penstock.engine.effects cimport EffectSink
from penstock.persist.aof cimport record_bytes

cdef Py_ssize_t _NO_DATABASE
cdef Py_ssize_t _HEAD_BYTES_MAX
cdef Py_ssize_t _ID_BYTES_MAX
cdef unsigned char _ARRAY
cdef Py_ssize_t _FIRST_BYTES
cdef Py_ssize_t _KEEP_BYTES_MAX
cdef bytes _MULTI
cdef bytes _EXEC
cdef bytes _XADD
cdef bytes _XCLAIM
cdef bytes _NO_IDLE_TIME
cdef bytes _TIME
cdef bytes _FIRST_DELIVERY
cdef bytes _SETID
cdef bytes _ENTRIESREAD
cdef Py_ssize_t _CLAIM_WORDS
cdef Py_ssize_t _SETID_WORDS
cdef Py_ssize_t _ADDED_BYTES_MAX
cdef Py_ssize_t _WORD_BYTES_MAX
cdef Py_ssize_t _DELIVERY_BYTES_MAX


# Not final: Cython would take the methods that it overrides for final ones.
cdef class Journal(EffectSink):
    cdef bytearray _buffer
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t database
    cdef Py_ssize_t _depth
    cdef Py_ssize_t _start
    cdef Py_ssize_t _count
    cdef Py_ssize_t _whole

    cpdef bytes take(self)
    cpdef int begin(self) except -1
    cpdef int end(self) except -1
    cpdef int abandon(self) except -1
    cdef int _settle(self) except -1
    cpdef int verbatim(self, Py_ssize_t database, Frame frame) except -1
    cpdef int words(self, Py_ssize_t database, list words) except -1
    @cython.locals(count=Py_ssize_t, at=Py_ssize_t, size=Py_ssize_t)
    cpdef int added(self, Py_ssize_t database, Frame frame, Py_ssize_t fields_at, Stream stream, list options) except -1
    @cython.locals(at=Py_ssize_t)
    cdef int _add_with_options(self, Frame frame, Py_ssize_t fields_at, Stream stream, list options) except -1
    @cython.locals(buffer=bytearray, count=Py_ssize_t, size=Py_ssize_t, at=Py_ssize_t, entry_id=bytes, key=bytes,
                   group_name=bytes, consumer=bytes)
    cpdef int delivered(self, Py_ssize_t database, tuple names, Group group, list ids,
                        long long when_ms) except -1
    cdef int _select(self, Py_ssize_t database) except -1
    cdef int _begin_effect(self, Py_ssize_t database, Py_ssize_t count) except -1
    @cython.locals(at=Py_ssize_t)
    cdef int _put_head(self, Py_ssize_t count) except -1
    @cython.locals(pieces=Py_ssize_t, at=Py_ssize_t, index=Py_ssize_t, start=Py_ssize_t, size=Py_ssize_t)
    cdef int _put_pieces(self, Frame frame, Py_ssize_t first) except -1
    @cython.locals(at=Py_ssize_t)
    cdef int _put_word(self, bytes word) except -1
    @cython.locals(at=Py_ssize_t)
    cdef int _put_raw(self, bytes data) except -1
    @cython.locals(missing=Py_ssize_t)
    cdef Py_ssize_t _room(self, Py_ssize_t size) except -1
