import cython

from penstock.core cimport memory, spans

cdef Py_ssize_t _SPAN_BYTES
cdef Py_ssize_t _KEEP_BYTES_MAX


# Sizes and positions are signed (Py_ssize_t): those of a missing piece must compare as "not there",
# never wrap around to a huge number.
@cython.final
cdef class Frame:
    cdef readonly bytearray buffer
    cdef readonly bytearray spans
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t end
    cdef readonly bint is_as_sent

    cpdef int clear(self) except -1
    cpdef int over(self, bytearray buffer) except -1
    cpdef int noted_in(self, bytearray buffer, Py_ssize_t count) except -1
    @cython.locals(index=Py_ssize_t, start=Py_ssize_t)
    cpdef void move_to(self, bytearray buffer, Py_ssize_t back) except *
    @cython.locals(size=Py_ssize_t, end=Py_ssize_t)
    cpdef int add(self, bytes piece) except -1
    @cython.locals(buffer=bytearray, spans=bytearray, size=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t)
    cpdef int add_text(self, str text) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int add_span(self, Py_ssize_t start, Py_ssize_t size) except -1
    cpdef Py_ssize_t start(self, Py_ssize_t index) except -1
    cpdef Py_ssize_t size(self, Py_ssize_t index) except -1
    @cython.locals(start=Py_ssize_t)
    cpdef bytes piece(self, Py_ssize_t index)
    cpdef Py_ssize_t bytes_from(self, Py_ssize_t first) except -1
    cpdef bint is_piece(self, Py_ssize_t index, bytes data) except -1
    cpdef bint is_word(self, Py_ssize_t index, bytes word) except -1
    cpdef bint is_char(self, Py_ssize_t index, unsigned char char) except -1
