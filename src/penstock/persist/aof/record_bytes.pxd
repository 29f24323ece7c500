# The C versions of record_bytes.py, inlined into the journal. As in memory.pxd, every access is checked to be
# inside its buffer.

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING
from libc.string cimport memcpy

from penstock.core.frame cimport Frame
from penstock.core.memory cimport _check, _length, _put_digits, _put_head, _size, digits
from penstock.core.stream cimport Stream

cdef enum:
    ADDED_BYTES_MAX = 104  # 24 for the head, 10 for XADD, 70 for the id
    WORD_BYTES_MAX = 72  # a head, two numbers of 20 digits, a dash, a line end


cdef inline char* _put_line_end(char* place) noexcept:
    place[0] = 13
    place[1] = 10
    return place + 2


cdef inline Py_ssize_t put_added(bytearray target, Py_ssize_t at, Frame frame, Py_ssize_t fields_at,
                                 Stream stream) except -1:
    cdef bytearray source = frame.buffer
    cdef bytearray spans = frame.spans
    cdef Py_ssize_t count = frame.count
    cdef bytes ms_text = stream.last_ms_text()
    cdef unsigned long long seq = stream.last_seq
    cdef const Py_ssize_t* span
    cdef const char* text
    cdef char* place
    cdef Py_ssize_t key_at, key_end, rest_at, rest_end, first, second
    _check(fields_at, 3, 0)
    _check(count, fields_at, 1)
    _check(_length(spans), 0, 16 * count)
    span = <const Py_ssize_t*> PyByteArray_AS_STRING(spans)
    key_at = span[0] + span[1] + 2
    key_end = span[2] + span[3] + 2
    rest_at = span[2 * fields_at - 2] + span[2 * fields_at - 1] + 2
    rest_end = span[2 * count - 2] + span[2 * count - 1] + 2
    _check(_length(source), key_at, key_end - key_at)
    _check(_length(source), rest_at, rest_end - rest_at)
    first = _size(ms_text)
    _check(22, first, 0)
    _check(_length(target), at, key_end - key_at + rest_end - rest_at + ADDED_BYTES_MAX)
    text = PyByteArray_AS_STRING(source)
    place = _put_head(PyByteArray_AS_STRING(target) + at, 42, 3 + count - fields_at)
    memcpy(place, b"$4\r\nXADD\r\n", 10)
    place += 10
    memcpy(place, text + key_at, key_end - key_at)
    place += key_end - key_at
    second = digits(seq)
    place = _put_head(place, 36, first + second)
    memcpy(place, PyBytes_AS_STRING(ms_text), first)
    place += first + second
    _put_digits(place, seq)
    place = _put_line_end(place)
    memcpy(place, text + rest_at, rest_end - rest_at)
    return place + (rest_end - rest_at) - PyByteArray_AS_STRING(target)


cdef inline Py_ssize_t put_id(bytearray target, Py_ssize_t at, unsigned long long ms, unsigned long long seq) except -1:
    cdef int first = digits(ms)
    cdef int second = digits(seq)
    cdef char* place
    _check(_length(target), at, WORD_BYTES_MAX)
    place = _put_head(PyByteArray_AS_STRING(target) + at, 36, first + second + 1) + first
    _put_digits(place, ms)
    place[0] = 45
    place += second + 1
    _put_digits(place, seq)
    return _put_line_end(place) - PyByteArray_AS_STRING(target)


cdef inline Py_ssize_t put_number(bytearray target, Py_ssize_t at, long long value) except -1:
    cdef bint negative = value < 0
    cdef unsigned long long magnitude = 0 - <unsigned long long> value if negative else <unsigned long long> value
    cdef int size = digits(magnitude)
    cdef char* place
    _check(_length(target), at, WORD_BYTES_MAX)
    place = _put_head(PyByteArray_AS_STRING(target) + at, 36, size + negative)
    if negative:
        place[0] = 45
        place += 1
    place += size
    _put_digits(place, magnitude)
    return _put_line_end(place) - PyByteArray_AS_STRING(target)
