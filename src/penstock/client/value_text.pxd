import cython

from penstock.core cimport memory

# Bytes of a buffer are compared with these as ints: an unsigned char would be promoted each time anyway.
cdef int _PLUS, _MINUS, _POINT, _COLON, _ZERO, _NINE, _BLANK, _CAPITAL_T, _CAPITAL_Z
cdef Py_ssize_t _DIGITS_MAX
cdef unsigned long long _INT64_MAX
cdef unsigned long long _EXACT_MAX
cdef Py_ssize_t _EXACT_SCALE_MAX
cdef tuple _POWERS
cdef tuple _TENS
cdef Py_ssize_t _NUMBER_DIGITS_MAX
cdef long long _DAY_MICROSECONDS
cdef long long _DAY_MIN
cdef long long _DAY_MAX
cdef int _FRACTION_DIGITS
cdef Py_ssize_t _BOOLEAN_BYTES_MAX
cdef unsigned long long _ASCII
cdef long long _T, _TRUE, _Y, _YES, _ONE_DIGIT, _F, _FALSE, _N, _NO, _ZERO_DIGIT


@cython.final
cdef class ValueText:
    cdef readonly long long number
    cdef readonly double real
    cdef readonly bytes wide
    cdef Py_ssize_t _at

    @cython.locals(at=Py_ssize_t, end=Py_ssize_t, negative=bint, magnitude="unsigned long long", byte=int)
    cpdef bint integer(self, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    @cython.locals(at=Py_ssize_t, end=Py_ssize_t, negative=bint, mantissa="unsigned long long", byte=int,
                   seen=Py_ssize_t, significant=Py_ssize_t, scale=Py_ssize_t, behind_point=bint, real=double,
                   power=double)
    cpdef bint real_number(self, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    cdef bint _real_slowly(self, bytes text) except -1
    @cython.locals(word="long long", at=Py_ssize_t, byte=int)
    cpdef bint boolean(self, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    cpdef bint date(self, bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
    @cython.locals(century="long long", year="long long", month="long long", day="long long", days="long long")
    cdef bint _day(self, bytearray buffer, Py_ssize_t at) except -1
    @cython.locals(end=Py_ssize_t, days="long long", microseconds="long long", offset="long long",
                   moment="long long", first="long long")
    cpdef bint timestamp(self, bytearray buffer, Py_ssize_t start, Py_ssize_t size, bint zoned) except -1
    @cython.locals(hours=Py_ssize_t, minutes=Py_ssize_t, seconds=Py_ssize_t, fraction=Py_ssize_t, digits=int)
    cdef Py_ssize_t _time(self, bytearray buffer, Py_ssize_t at, Py_ssize_t end) except? -1
    @cython.locals(size=Py_ssize_t, hours="long long", minutes="long long")
    cdef bint _zone(self, bytearray buffer, Py_ssize_t at, Py_ssize_t end) except -1
    @cython.locals(at=Py_ssize_t, end=Py_ssize_t, negative=bint, mantissa="unsigned long long",
                   byte=int, ten="unsigned long long", digits=Py_ssize_t, behind=Py_ssize_t, behind_point=bint)
    cpdef bint decimal_number(self, bytearray buffer, Py_ssize_t start, Py_ssize_t size, Py_ssize_t precision,
                       Py_ssize_t scale) except -1
    cpdef bint decimal_of(self, long long value, Py_ssize_t precision, Py_ssize_t scale) except -1
    cdef bint _decimal_slowly(self, bytes text, Py_ssize_t precision, Py_ssize_t scale) except -1


@cython.locals(first=int, second=int)
cdef long long _two_digits(bytearray buffer, Py_ssize_t at) except? -1
cdef long long _month_days(long long year, long long month) noexcept
@cython.locals(at=Py_ssize_t, end=Py_ssize_t, lead=int, low=int, high=int, more=int)
cpdef bint is_utf8(bytearray buffer, Py_ssize_t start, Py_ssize_t size) except -1
