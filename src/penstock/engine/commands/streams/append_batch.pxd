# The work per row is typed; the work per batch is not.

import cython

from penstock.core cimport listpack, memory
from penstock.core.frame cimport Frame
from penstock.core.list_value cimport ListValue
from penstock.core.row_blob cimport RowBlob
from penstock.core.stream cimport Stream
from penstock.engine.context cimport Context

cdef Py_ssize_t _FIELDS_AT


@cython.locals(blob=RowBlob, rows="long long", node=bytearray, at=Py_ssize_t, size=Py_ssize_t)
cdef long long _count_rows(bytes key, ListValue staged) except -1
@cython.locals(blob=RowBlob, row=Frame, prefix=Py_ssize_t, at=Py_ssize_t, size=Py_ssize_t, buffer=bytearray)
cdef int _append_node(Context context, bytes key, Stream stream, bytearray node) except -1
