import cython

from penstock.client cimport value_text
from penstock.client.value_text cimport ValueText
from penstock.core cimport listpack, memory

cdef int _STRING, _BINARY, _INTEGER, _FLOAT, _DOUBLE, _BOOLEAN
cdef int _DATE, _TIMESTAMP, _LOCAL_TIMESTAMP, _DECIMAL
cdef int _STREAM, _ENTRY_ID, _ENTRY_TIME
cdef Py_ssize_t _AS_INTEGER
cdef Py_ssize_t _ROWS_FIRST
cdef Py_ssize_t _INTEGER_TEXT_BYTES
cdef Py_ssize_t _ID_TEXT_BYTES_MAX
cdef unsigned long long _INT64_MAX
cdef unsigned long long _TIME_MS_MAX
cdef long long _MASK32
cdef int _DASH


# Rows and sizes are Py_ssize_t: sums of them are compared before anything is stored in 32 bits.
@cython.final
cdef class Column:
    cdef readonly int kind
    cdef readonly int width
    cdef readonly Py_ssize_t precision
    cdef readonly Py_ssize_t scale
    cdef readonly bint is_text
    cdef readonly Py_ssize_t nulls
    cdef bytearray _validity
    cdef bytearray _offsets
    cdef bytearray _data
    cdef Py_ssize_t _size
    cdef Py_ssize_t _capacity
    cdef ValueText _text

    @cython.locals(rows=Py_ssize_t)
    cdef int _begin(self, Py_ssize_t data_bytes) except -1
    cpdef tuple take(self)
    cpdef Py_ssize_t text_bytes(self) except -1
    @cython.locals(rows=Py_ssize_t)
    cdef int _grow(self) except -1
    @cython.locals(missing=Py_ssize_t)
    cdef int _room(self, Py_ssize_t size) except -1
    cpdef int put_null(self, Py_ssize_t row) except -1
    @cython.locals(kind=int)
    cpdef bint put(self, Py_ssize_t row, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    cpdef int put_text(self, Py_ssize_t row, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    cpdef int put_bytes(self, Py_ssize_t row, bytes text) except -1
    cdef int _text_is_put(self, Py_ssize_t row, Py_ssize_t size) except -1
    @cython.locals(end=Py_ssize_t)
    cdef int _put_digits(self, Py_ssize_t row, long long value) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int put_id(self, Py_ssize_t row, unsigned long long ms, unsigned long long seq) except -1
    cpdef int put_time(self, Py_ssize_t row, unsigned long long ms) except -1
    @cython.locals(number="long long", width=int)
    cdef bint _put_integer(self, Py_ssize_t row, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    @cython.locals(real=double)
    cdef bint _put_real(self, Py_ssize_t row, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    @cython.locals(text=ValueText, number="long long", sign="long long")
    cdef bint _put_decimal(self, Py_ssize_t row, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    @cython.locals(text=ValueText, number="long long", kind=int, found=bint)
    cdef bint _put_odd(self, Py_ssize_t row, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1


@cython.final
cdef class Pairs:
    cdef readonly Column names
    cdef readonly Column values
    cdef public Py_ssize_t count
    cdef readonly Py_ssize_t nulls
    cdef bytearray _validity
    cdef bytearray _offsets
    cdef Py_ssize_t _capacity

    cdef int _begin(self) except -1
    cpdef tuple take(self)
    cpdef int end_row(self, Py_ssize_t row, bint is_null) except -1
