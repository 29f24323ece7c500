# A magnitude is unsigned: that of the smallest number is 2**63.

import cython

from penstock.core cimport memory, stream_id
from penstock.core.frame cimport Frame

cdef unsigned long long _INT64_MAX
cdef Py_ssize_t _DIGITS_MAX
cdef unsigned char _MINUS
cdef unsigned char _ZERO
cdef unsigned char _NINE

@cython.locals(buffer=bytearray, at=Py_ssize_t, size=Py_ssize_t, end=Py_ssize_t, negative=bint,
               magnitude="unsigned long long")
cpdef long long int_at(Frame frame, Py_ssize_t index, error=*) except? -1
@cython.locals(ids=list, at=Py_ssize_t)
cpdef list ids_from(Frame frame, Py_ssize_t first)
