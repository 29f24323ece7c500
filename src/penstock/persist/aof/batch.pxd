# Compiled so that no signal handler of the program runs between two of its steps. The places in a line have C types,
# because every write of the log begins with a line.

import cython

from penstock.core cimport memory

cdef bytes _FIRST
cdef unsigned char _COLON


@cython.locals(text=bytearray, start=Py_ssize_t, at=Py_ssize_t)
cpdef bytes encode_batch(bytes data, long long synced, long long offset)
