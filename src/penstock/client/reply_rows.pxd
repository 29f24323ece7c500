import cython

from penstock.client.inbox cimport Inbox
from penstock.client.node_rows cimport NodeRows
from penstock.client.rows cimport FieldNames, Rows
from penstock.core cimport memory, stream_id
from penstock.core.stream_id cimport StreamID

cdef int _MORE, _FULL, _DONE
cdef int _STAR, _DASH, _ZERO, _NINE
cdef Py_ssize_t _DIGITS_MAX
cdef Py_ssize_t _PIECES_USUAL
cdef Py_ssize_t _ENTRY_PARTS
cdef Py_ssize_t _UNKNOWN


@cython.final
cdef class RangeReply:
    cdef Inbox _inbox
    cdef Rows _rows
    cdef FieldNames _names
    cdef Py_ssize_t _left
    cdef unsigned long long _ms
    cdef unsigned long long _seq
    cdef Py_ssize_t _values_bytes
    cdef readonly Py_ssize_t count
    cdef readonly unsigned long long last_ms
    cdef readonly unsigned long long last_seq

    cpdef int expect(self) except -1
    @cython.locals(inbox=Inbox, entry_at=Py_ssize_t, state=int)
    cpdef int run(self) except -1
    @cython.locals(inbox=Inbox, rows=Rows, fields=Py_ssize_t)
    cdef int _entry(self) except -1
    @cython.locals(buffer=bytearray, at=Py_ssize_t, end=Py_ssize_t, dash=Py_ssize_t, found=StreamID)
    cdef int _read_id(self, Inbox inbox) except -1
    @cython.locals(inbox=Inbox, rows=Rows, buffer=bytearray, pieces=Py_ssize_t, noted=Py_ssize_t, last=Py_ssize_t,
                   spans=bytearray, known=FieldNames, expected=list, number=Py_ssize_t, start=Py_ssize_t,
                   size=Py_ssize_t)
    cdef bint _fields(self, Py_ssize_t fields) except -1
    @cython.locals(spans=bytearray, number=Py_ssize_t, start=Py_ssize_t, size=Py_ssize_t)
    cdef FieldNames _read_names(self, Py_ssize_t fields)


@cython.final
cdef class NodesReply:
    cdef Inbox _inbox
    cdef NodeRows _nodes
    cdef Py_ssize_t _left
    cdef readonly bytes cursor
    cdef readonly bint cursor_is_known

    cpdef int expect(self) except -1
    @cython.locals(inbox=Inbox, start=Py_ssize_t)
    cpdef bint read_cursor(self) except -1
    @cython.locals(inbox=Inbox, nodes=NodeRows, node_at=Py_ssize_t)
    cpdef int run(self) except -1
    @cython.locals(inbox=Inbox, master=StreamID)
    cdef bint _open_node(self) except -1


cdef StreamID _parsed_id(Inbox inbox)
