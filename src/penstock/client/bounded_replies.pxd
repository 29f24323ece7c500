import cython

cdef Py_ssize_t _NO_STRING
cdef Py_ssize_t _DIGITS_MAX
cdef int _CR, _DOLLAR, _STAR, _PLUS, _MINUS, _COLON


# Sizes are signed and 64 bits wide: the limits keep their sums far below.
@cython.final
cdef class ReplyBuilder:
    cdef readonly bint is_done
    cdef readonly object result
    cdef readonly Py_ssize_t wanted
    cdef object _parse_error
    cdef list _open
    cdef Py_ssize_t _elements
    cdef Py_ssize_t _bytes
    cdef Py_ssize_t _size

    @cython.locals(at=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t, behind=Py_ssize_t)
    cpdef Py_ssize_t feed(self, bytes data) except -1
    @cython.locals(kind=int)
    cpdef Py_ssize_t line(self, bytes raw) except? -2
    @cython.locals(items=list, size=Py_ssize_t)
    cpdef int add(self, object value) except -1
    cdef Py_ssize_t _string(self, object size) except? -2
    cdef int _array(self, object size) except -1
    cdef object _error(self, bytes rest)
    cdef int _charge(self, Py_ssize_t size) except -1


@cython.locals(length=Py_ssize_t, at=Py_ssize_t, digit=int, number="long long")
cdef object _number(bytes raw)
