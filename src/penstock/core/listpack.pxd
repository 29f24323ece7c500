import cython

from penstock.core cimport memory

cdef Py_ssize_t _HEADER_BYTES
cdef unsigned char _END
cdef unsigned int _COUNT_UNKNOWN
cdef long long _TOTAL_BYTES_MAX
cdef Py_ssize_t _OVERHEAD_MAX
cdef int _BEFORE
cdef int _AFTER
cdef int _REPLACE
cdef unsigned long long _NOT_AN_INTEGER
cdef Py_ssize_t _INT64_DIGITS_MAX
cdef unsigned long long _MAGNITUDE_MAX

# Positions and sizes are Py_ssize_t: signed, so that arithmetic on corrupt lengths goes negative and
# fails a bounds check instead of wrapping to a valid position. Element values are long long.
cpdef bytearray new()
cpdef Py_ssize_t total_bytes(bytearray lp) except -1
@cython.locals(count=Py_ssize_t, at=Py_ssize_t)
cpdef Py_ssize_t length(bytearray lp) except -1
cpdef Py_ssize_t first(bytearray lp) except -1
cpdef Py_ssize_t last(bytearray lp) except -1
cpdef Py_ssize_t next_at(bytearray lp, Py_ssize_t at) except -1
@cython.locals(lead="unsigned int", size=Py_ssize_t)
cpdef Py_ssize_t skip(bytearray lp, Py_ssize_t at) except -1
@cython.locals(size=Py_ssize_t, start=Py_ssize_t)
cpdef Py_ssize_t previous_at(bytearray lp, Py_ssize_t at) except -1
@cython.locals(at=Py_ssize_t)
cpdef Py_ssize_t seek(bytearray lp, Py_ssize_t index) except -1
@cython.locals(lead="unsigned int")
cpdef Py_ssize_t encoded_size(bytearray lp, Py_ssize_t at) except -1
@cython.locals(lead="unsigned int")
cpdef bint is_int(bytearray lp, Py_ssize_t at) except -1
@cython.locals(lead="unsigned int", value="long long")
cpdef long long get_int(bytearray lp, Py_ssize_t at) except? -1
cpdef Py_ssize_t string_size(bytearray lp, Py_ssize_t at) except -1
cpdef Py_ssize_t string_at(bytearray lp, Py_ssize_t at) except -1
cdef Py_ssize_t _lead_bytes(unsigned int lead) noexcept
@cython.locals(lead="unsigned int")
cpdef bytes get_bytes(bytearray lp, Py_ssize_t at)
cpdef object get(bytearray lp, Py_ssize_t at)
@cython.locals(lead="unsigned int")
cpdef bint equals(bytearray lp, Py_ssize_t at, bytearray source, Py_ssize_t start, Py_ssize_t size) except -1

cpdef Py_ssize_t put_int(bytearray lp, Py_ssize_t at, long long value) except -1
cpdef Py_ssize_t int_size(long long value) noexcept
@cython.locals(magnitude="unsigned long long")
cpdef Py_ssize_t put_string(bytearray lp, Py_ssize_t at, bytearray source, Py_ssize_t start, Py_ssize_t size) except -1
# 19 digits fit 64 unsigned bits, so the sum cannot wrap before it is compared.
@cython.locals(at=Py_ssize_t, end=Py_ssize_t, negative=bint, value="unsigned long long")
cdef unsigned long long _magnitude(bytearray source, Py_ssize_t start, Py_ssize_t size) except? 0
cpdef Py_ssize_t backlen_size(Py_ssize_t size) noexcept
@cython.locals(left=Py_ssize_t, behind=Py_ssize_t, continued="unsigned int")
cdef Py_ssize_t _put_backlen(bytearray lp, Py_ssize_t at, Py_ssize_t size) except -1
# Seven bits of the fifth byte, shifted by 28, do not fit C's int.
@cython.locals(size=Py_ssize_t, bits=Py_ssize_t, shift=int)
cdef Py_ssize_t _read_backlen(bytearray lp, Py_ssize_t at) except -1

cpdef Py_ssize_t append(bytearray lp, bytes data) except -1
@cython.locals(at=Py_ssize_t)
cpdef Py_ssize_t append_int(bytearray lp, long long value) except -1
@cython.locals(replaced=Py_ssize_t, element=bytearray, end=Py_ssize_t)
cpdef Py_ssize_t insert(bytearray lp, Py_ssize_t at, bytes data, int where) except -1
@cython.locals(old=Py_ssize_t)
cpdef Py_ssize_t replace_int(bytearray lp, Py_ssize_t at, long long value) except? -1
cpdef Py_ssize_t delete(bytearray lp, Py_ssize_t at) except -1
cpdef int check_room(bytearray lp, long long more) except -1
@cython.locals(element=bytearray)
cdef bytearray _int_element(long long value)
@cython.locals(total="long long", count="long long")
cdef int _splice(bytearray lp, Py_ssize_t at, Py_ssize_t old, bytearray element, int added) except -1

@cython.locals(size=Py_ssize_t, lp=bytearray)
cpdef bytearray validate(data, bint deep=*)
@cython.locals(end=Py_ssize_t, at=Py_ssize_t, count=Py_ssize_t, stated="unsigned int")
cdef int _validate_elements(bytearray lp) except -1
@cython.locals(lead="unsigned int", lead_bytes=Py_ssize_t, size=Py_ssize_t, behind=Py_ssize_t,
               left=Py_ssize_t, place=Py_ssize_t, continued="unsigned int")
cdef Py_ssize_t _validate_element(bytearray lp, Py_ssize_t at, Py_ssize_t end) except -1
