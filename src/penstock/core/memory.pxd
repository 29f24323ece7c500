# The C versions of memory.py, inlined into every compiled module. Each checks once that all the bytes it
# touches are inside the buffer, in a form that cannot overflow, and then uses memcpy and the like. memory.py
# itself is not compiled: both builds run every test of this package, so a difference between the two
# versions is found there.

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memchr, memcmp, memcpy, memmove


# C accepts None for any bytearray or bytes. Every function refuses it with a TypeError, as Python does. The
# length of a None bytearray is -1, which fails every check: this test costs nothing extra.
cdef inline Py_ssize_t _length(bytearray buffer) noexcept:
    return -1 if buffer is None else PyByteArray_GET_SIZE(buffer)


cdef inline Py_ssize_t _size(bytes data) except -1:
    if data is None:
        raise TypeError("None in the place of bytes")
    return PyBytes_GET_SIZE(data)


cdef inline int _check(Py_ssize_t length, Py_ssize_t at, Py_ssize_t size) except -1:
    if at < 0 or size < 0 or at > length - size:
        # One statement: with two, gcc arranges the callers so that an xadd takes 5% longer.
        raise (TypeError if length < 0 else IndexError)(
            f"{size} bytes at {at} do not lie inside a buffer of {length}")
    return 0


# Wider than what they read, and signed: a caller's sum or difference must not wrap at 32 bits.
cdef inline Py_ssize_t load16(bytearray buffer, Py_ssize_t at) except -1:
    cdef unsigned short value
    _check(_length(buffer), at, 2)
    memcpy(&value, PyByteArray_AS_STRING(buffer) + at, 2)
    return value


cdef inline Py_ssize_t load32(bytearray buffer, Py_ssize_t at) except -1:
    cdef unsigned int value
    _check(_length(buffer), at, 4)
    memcpy(&value, PyByteArray_AS_STRING(buffer) + at, 4)
    return value


cdef inline unsigned long long load64(bytearray buffer, Py_ssize_t at) except? 0xFFFFFFFF:
    cdef unsigned long long value
    _check(_length(buffer), at, 8)
    memcpy(&value, PyByteArray_AS_STRING(buffer) + at, 8)
    return value


cdef inline int store16(bytearray buffer, Py_ssize_t at, unsigned short value) except -1:
    _check(_length(buffer), at, 2)
    memcpy(PyByteArray_AS_STRING(buffer) + at, &value, 2)
    return 0


cdef inline int store32(bytearray buffer, Py_ssize_t at, unsigned int value) except -1:
    _check(_length(buffer), at, 4)
    memcpy(PyByteArray_AS_STRING(buffer) + at, &value, 4)
    return 0


cdef inline int store64(bytearray buffer, Py_ssize_t at, unsigned long long value) except -1:
    _check(_length(buffer), at, 8)
    memcpy(PyByteArray_AS_STRING(buffer) + at, &value, 8)
    return 0


cdef inline int store_pair(bytearray buffer, Py_ssize_t at, unsigned long long first,
                           unsigned long long second) except -1:
    _check(_length(buffer), at, 16)
    memcpy(PyByteArray_AS_STRING(buffer) + at, &first, 8)
    memcpy(PyByteArray_AS_STRING(buffer) + at + 8, &second, 8)
    return 0


cdef inline int store_float(bytearray buffer, Py_ssize_t at, double value) except -1:
    cdef float rounded = <float> value
    _check(_length(buffer), at, 4)
    memcpy(PyByteArray_AS_STRING(buffer) + at, &rounded, 4)
    return 0


cdef inline int store_double(bytearray buffer, Py_ssize_t at, double value) except -1:
    _check(_length(buffer), at, 8)
    memcpy(PyByteArray_AS_STRING(buffer) + at, &value, 8)
    return 0


cdef inline Py_ssize_t span_start(bytearray spans, Py_ssize_t index) except -1:
    cdef Py_ssize_t value
    _check(_length(spans), index * 16, 16)
    memcpy(&value, PyByteArray_AS_STRING(spans) + index * 16, 8)
    return value


cdef inline Py_ssize_t span_size(bytearray spans, Py_ssize_t index) except -1:
    cdef Py_ssize_t value
    _check(_length(spans), index * 16, 16)
    memcpy(&value, PyByteArray_AS_STRING(spans) + index * 16 + 8, 8)
    return value


cdef inline unsigned long long load64_big(bytes key, Py_ssize_t at) except? 0xFFFFFFFF:
    cdef const unsigned char* place
    cdef unsigned long long value = 0
    cdef int i
    _check(_size(key), at, 8)
    place = <const unsigned char*> PyBytes_AS_STRING(key) + at
    for i in range(8):
        value = value << 8 | place[i]
    return value


cdef inline int copy(bytearray target, Py_ssize_t at, bytearray source, Py_ssize_t start, Py_ssize_t size) except -1:
    _check(_length(target), at, size)
    _check(_length(source), start, size)
    memcpy(PyByteArray_AS_STRING(target) + at, PyByteArray_AS_STRING(source) + start, size)
    return 0


# The new bytes are not cleared: extending by a bytes object writes each of them twice.
cdef inline int grow(bytearray buffer, Py_ssize_t size) except -1:
    _check(_length(buffer), 0, 0)
    if size > PyByteArray_GET_SIZE(buffer):
        PyByteArray_Resize(buffer, size)
    return 0


cdef inline int put(bytearray target, Py_ssize_t at, bytes data) except -1:
    cdef Py_ssize_t size = _size(data)
    _check(_length(target), at, size)
    memcpy(PyByteArray_AS_STRING(target) + at, PyBytes_AS_STRING(data), size)
    return 0


cdef inline int put_part(bytearray target, Py_ssize_t at, bytes data, Py_ssize_t start, Py_ssize_t size) except -1:
    _check(_length(target), at, size)
    _check(_size(data), start, size)
    memcpy(PyByteArray_AS_STRING(target) + at, PyBytes_AS_STRING(data) + start, size)
    return 0


# A str caches its UTF-8 form (an ASCII str always has it): no bytes object is made.
cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef inline Py_ssize_t put_text(bytearray target, Py_ssize_t at, str text) except -1:
    cdef Py_ssize_t size
    cdef const char* data
    _check(_length(target), at, 0)
    data = PyUnicode_AsUTF8AndSize(text, &size)
    if size <= _length(target) - at:
        memcpy(PyByteArray_AS_STRING(target) + at, data, size)
    return size


cdef inline int move(bytearray buffer, Py_ssize_t at, Py_ssize_t start, Py_ssize_t size) except -1:
    _check(_length(buffer), at, size)
    _check(_length(buffer), start, size)
    memmove(PyByteArray_AS_STRING(buffer) + at, PyByteArray_AS_STRING(buffer) + start, size)
    return 0


# A repetition is short and may read what it has just written, so memmove cannot be used.
cdef inline int repeat(bytearray buffer, Py_ssize_t at, Py_ssize_t back, Py_ssize_t size) except -1:
    cdef char* target
    cdef Py_ssize_t i
    _check(_length(buffer), at, size)
    _check(_length(buffer), at - back, 0)
    if back < 1:
        raise IndexError(back)
    target = PyByteArray_AS_STRING(buffer) + at
    for i in range(size):
        target[i] = target[i - back]
    return 0


cdef inline bint equal(bytearray left, Py_ssize_t at, bytearray right, Py_ssize_t start, Py_ssize_t size) except -1:
    _check(_length(left), at, size)
    _check(_length(right), start, size)
    return memcmp(PyByteArray_AS_STRING(left) + at, PyByteArray_AS_STRING(right) + start, size) == 0


cdef inline bint is_bytes(bytearray buffer, Py_ssize_t at, Py_ssize_t size, bytes data) except -1:
    _check(_length(buffer), at, size)
    return (size == _size(data)
            and memcmp(PyByteArray_AS_STRING(buffer) + at, PyBytes_AS_STRING(data), size) == 0)


cdef inline Py_ssize_t common_prefix(bytearray buffer, Py_ssize_t at, Py_ssize_t size, bytes key, Py_ssize_t start) except -1:
    cdef const char* left
    cdef const char* right
    cdef Py_ssize_t i
    cdef Py_ssize_t length = _size(key)
    _check(_length(buffer), at, size)
    _check(length, start, 0)
    size = min(size, length - start)
    left = PyByteArray_AS_STRING(buffer) + at
    right = PyBytes_AS_STRING(key) + start
    for i in range(size):
        if left[i] != right[i]:
            return i
    return size


cdef inline bytes cut(bytearray buffer, Py_ssize_t at, Py_ssize_t size):
    _check(_length(buffer), at, size)
    return PyBytes_FromStringAndSize(PyByteArray_AS_STRING(buffer) + at, size)


cdef inline long long distance(unsigned long long left, unsigned long long right) noexcept:
    return <long long> (left - right)


cdef inline unsigned long long advance(unsigned long long number, long long delta) noexcept:
    return number + <unsigned long long> delta


cdef inline long long negate(unsigned long long magnitude) noexcept:
    return <long long> (0 - magnitude)


# The longest number, 2**64 - 1, has 20 digits; each function writes backwards from the end of its room.
cdef inline char* _put_digits(char* end, unsigned long long value) noexcept:
    while True:
        end -= 1
        end[0] = <char> (48 + value % 10)
        value = value // 10
        if value == 0:
            return end


cdef inline bytes format_pair(unsigned long long ms, unsigned long long seq):
    cdef char text[41]
    cdef char* end = text + 41
    cdef char* start = _put_digits(end, seq) - 1
    start[0] = 45
    start = _put_digits(start, ms)
    return PyBytes_FromStringAndSize(start, end - start)


cdef inline bytes format_behind(bytes prefix, unsigned long long number):
    cdef char text[20]
    cdef char* end = text + 20
    cdef char* start = _put_digits(end, number)
    cdef Py_ssize_t size = _size(prefix)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size + (end - start))
    memcpy(PyBytes_AS_STRING(made), PyBytes_AS_STRING(prefix), size)
    memcpy(PyBytes_AS_STRING(made) + size, start, end - start)
    return made


cdef inline bytes key_pair(unsigned long long ms, unsigned long long seq):
    cdef char text[16]
    cdef int i
    for i in range(8):
        text[i] = <char> (ms >> (56 - 8 * i))
        text[8 + i] = <char> (seq >> (56 - 8 * i))
    return PyBytes_FromStringAndSize(text, 16)


cdef inline bytes format_int(long long value):
    cdef char text[21]
    cdef char* end = text + 21
    cdef char* start
    if value < 0:
        start = _put_digits(end, 0 - <unsigned long long> value) - 1
        start[0] = 45
    else:
        start = _put_digits(end, <unsigned long long> value)
    return PyBytes_FromStringAndSize(start, end - start)


cdef inline Py_ssize_t find_byte(bytearray buffer, Py_ssize_t start, Py_ssize_t end, unsigned char char) except? -1:
    cdef const char* base
    cdef const char* found
    _check(_length(buffer), start, end - start)
    base = PyByteArray_AS_STRING(buffer)
    found = <const char*> memchr(base + start, char, end - start)
    return -1 if found == NULL else found - base


cdef inline int digits(unsigned long long value) noexcept:
    cdef int count = 1
    while value >= 10:
        value = value // 10
        count += 1
    return count


cdef inline Py_ssize_t put_number(bytearray target, Py_ssize_t at, long long value) except -1:
    cdef bint negative = value < 0
    cdef unsigned long long magnitude = 0 - <unsigned long long> value if negative else <unsigned long long> value
    cdef Py_ssize_t size = digits(magnitude) + negative
    cdef char* place
    _check(_length(target), at, size)
    place = PyByteArray_AS_STRING(target) + at
    if negative:
        place[0] = 45
    _put_digits(place + size, magnitude)
    return at + size


cdef inline Py_ssize_t put_hex(bytearray target, Py_ssize_t at, unsigned int value) except -1:
    cdef const char* symbols = b"0123456789abcdef"
    cdef char* place
    cdef int index
    _check(_length(target), at, 8)
    place = PyByteArray_AS_STRING(target) + at
    for index in range(8):
        place[index] = symbols[value >> (28 - 4 * index) & 15]
    return at + 8


cdef inline Py_ssize_t short_line(bytearray buffer, Py_ssize_t at, Py_ssize_t end, unsigned char kind) except? -1:
    cdef const unsigned char* line
    cdef Py_ssize_t number
    cdef int size
    _check(_length(buffer), at, end - at)
    if end - at < 4:
        return -1
    line = <const unsigned char*> PyByteArray_AS_STRING(buffer) + at
    number = line[1] - 48
    if line[0] != kind or number < 0 or number > 9:
        return -1
    for size in range(1, 4):
        if end - at < size + 3:
            return -1
        if line[1 + size] == 13:
            return number << 3 | (size + 3)
        if number == 0 or line[1 + size] < 48 or line[1 + size] > 57:
            return -1
        number = number * 10 + (line[1 + size] - 48)
    return -1


cdef inline Py_ssize_t note_bulks(bytearray buffer, Py_ssize_t at, Py_ssize_t end, bytearray spans,
                                  Py_ssize_t first, Py_ssize_t most) except -1:
    cdef Py_ssize_t noted = 0
    cdef const unsigned char* base
    cdef const unsigned char* line
    cdef unsigned int digit
    cdef Py_ssize_t size
    cdef char* span
    _check(_length(buffer), at, end - at)
    _check(_length(spans), 16 * first, 0)
    most = min(most, _length(spans) // 16 - first)
    base = <const unsigned char*> PyByteArray_AS_STRING(buffer)
    span = PyByteArray_AS_STRING(spans) + 16 * first
    while noted < most and end - at >= 6:  # $0 CR LF CR LF is the shortest
        line = base + at
        size = <Py_ssize_t> line[1] - 48
        if line[0] != 36 or size < 0 or size > 9:
            break
        if line[2] == 13:
            at += 4
        else:
            digit = <unsigned int> line[2] - 48
            if digit > 9 or size == 0:
                break
            size = size * 10 + digit
            if line[3] == 13:
                at += 5
            else:
                digit = <unsigned int> line[3] - 48
                if digit > 9 or line[4] != 13:
                    break
                size = size * 10 + digit
                at += 6
        if end - at < size + 2:
            break
        memcpy(span, &at, 8)
        memcpy(span + 8, &size, 8)
        span += 16
        at += size + 2
        noted += 1
    return noted


cdef inline Py_ssize_t sizes(bytearray spans, Py_ssize_t first, Py_ssize_t until) except -1:
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t size
    cdef const char* place
    if until <= first:
        _check(_length(spans), 0, 0)
        return 0
    _check(_length(spans), 16 * first, 16 * (until - first))
    place = PyByteArray_AS_STRING(spans) + 16 * first + 8
    while first < until:
        memcpy(&size, place, 8)
        total += size
        place += 16
        first += 1
    return total


cdef inline bint is_short_string(bytearray node, Py_ssize_t at, bytearray spans, Py_ssize_t index,
                                 bytearray source) except -1:
    cdef Py_ssize_t start = span_start(spans, index)
    cdef Py_ssize_t size = span_size(spans, index)
    cdef const unsigned char* place
    _check(_length(node), at, 1)
    place = <const unsigned char*> PyByteArray_AS_STRING(node) + at
    if size > 63 or place[0] != (0x80 | size):
        _check(_length(source), 0, 0)
        return False
    _check(_length(node), at, size + 1)
    _check(_length(source), start, size)
    return memcmp(place + 1, PyByteArray_AS_STRING(source) + start, size) == 0


cdef inline Py_ssize_t put_short_string(bytearray node, Py_ssize_t at, bytearray spans, Py_ssize_t index,
                                        bytearray source) except -1:
    cdef Py_ssize_t start = span_start(spans, index)
    cdef Py_ssize_t size = span_size(spans, index)
    cdef const unsigned char* piece
    cdef unsigned char* place
    _check(_length(source), start, size)
    piece = <const unsigned char*> PyByteArray_AS_STRING(source) + start
    if size > 63 or (size != 0 and piece[0] <= 57):
        _check(_length(node), 0, 0)
        return 0
    _check(_length(node), at, size + 2)
    place = <unsigned char*> PyByteArray_AS_STRING(node) + at
    place[0] = 0x80 | <unsigned char> size
    memcpy(place + 1, piece, size)
    place[size + 1] = <unsigned char> (size + 1)
    return at + size + 2


# Two digits are enough for nearly every field; the longest head with both line ends has 26 bytes.
cdef inline Py_ssize_t put_bulk(bytearray target, Py_ssize_t at, bytearray source, Py_ssize_t start,
                                Py_ssize_t size) except -1:
    cdef char* place
    _check(_length(target), at, size + 26)
    _check(_length(source), start, size)
    place = PyByteArray_AS_STRING(target) + at
    place = _put_head(place, 36, size)
    memcpy(place, PyByteArray_AS_STRING(source) + start, size)
    place[size] = 13
    place[size + 1] = 10
    return place + size + 2 - PyByteArray_AS_STRING(target)


cdef inline char* _put_head(char* place, unsigned char kind, Py_ssize_t size) noexcept:
    place[0] = <char> kind
    if size < 10:
        place[1] = <char> (48 + size)
        place += 2
    elif size < 100:
        place[1] = <char> (48 + <unsigned int> size // 10)
        place[2] = <char> (48 + <unsigned int> size % 10)
        place += 3
    else:
        place += 1 + digits(size)
        _put_digits(place, size)
    place[0] = 13
    place[1] = 10
    return place + 2


cdef inline Py_ssize_t put_bulk_bytes(bytearray target, Py_ssize_t at, bytes data) except -1:
    cdef Py_ssize_t size = _size(data)
    cdef char* place
    _check(_length(target), at, size + 26)
    place = _put_head(PyByteArray_AS_STRING(target) + at, 36, size)
    memcpy(place, PyBytes_AS_STRING(data), size)
    place[size] = 13
    place[size + 1] = 10
    return place + size + 2 - PyByteArray_AS_STRING(target)


cdef inline Py_ssize_t put_small_numbers(bytearray node, Py_ssize_t at, long long first, long long second,
                                         long long third) except -1:
    cdef unsigned char* place
    if (first | second | third) & ~127:
        _check(_length(node), 0, 0)
        return 0
    _check(_length(node), at, 6)
    place = <unsigned char*> PyByteArray_AS_STRING(node) + at
    place[0] = <unsigned char> first
    place[1] = 1
    place[2] = <unsigned char> second
    place[3] = 1
    place[4] = <unsigned char> third
    place[5] = 1
    return at + 6


cdef inline Py_ssize_t put_head(bytearray target, Py_ssize_t at, unsigned char kind, Py_ssize_t number) except -1:
    _check(_length(target), at, 24)
    return _put_head(PyByteArray_AS_STRING(target) + at, kind, number) - PyByteArray_AS_STRING(target)


# --- Listpack elements: core/listpack draws the encodings ---------------------------------------------------

# The position behind the element at `place`; NULL if there is none that ends at or before `end`.
cdef inline const unsigned char* _behind(const unsigned char* place, const unsigned char* end) noexcept:
    cdef Py_ssize_t left = end - place
    cdef Py_ssize_t size
    cdef unsigned int long_size
    if left < 2:
        return NULL
    if place[0] < 0x80:
        return place + 2
    if place[0] < 0xC0:
        size = 2 + (place[0] & 0x3F)
        return place + size if size <= left else NULL
    if place[0] < 0xE0:
        size = 2
    elif place[0] < 0xF0:
        size = 2 + ((<Py_ssize_t> place[0] & 0x0F) << 8 | place[1])
    elif place[0] == 0xF0:
        if left < 6:
            return NULL
        memcpy(&long_size, place + 1, 4)
        size = 5 + <Py_ssize_t> long_size
    elif place[0] <= 0xF4:
        size = 9 if place[0] == 0xF4 else place[0] - 0xEE
    else:
        return NULL
    size += 1 if size <= 127 else 2 if size < 16383 else 3 if size < 2097151 else 4 if size < 268435455 else 5
    return place + size if size <= left else NULL


# Both are for an element that lies inside its node.
cdef inline bint _is_int(const unsigned char* place) noexcept:
    return place[0] < 0x80 or (place[0] & 0xE0) == 0xC0 or place[0] > 0xF0


cdef inline long long _int_value(const unsigned char* place) noexcept:
    cdef unsigned long long bits = 0
    cdef int unused
    if place[0] < 0x80:
        return place[0]
    if place[0] < 0xE0:
        bits = <unsigned long long> (place[0] & 0x1F) << 8 | place[1]
        unused = 51
    elif place[0] == 0xF1:
        memcpy(&bits, place + 1, 2)
        unused = 48
    elif place[0] == 0xF2:
        memcpy(&bits, place + 1, 3)
        unused = 40
    elif place[0] == 0xF3:
        memcpy(&bits, place + 1, 4)
        unused = 32
    else:
        memcpy(&bits, place + 1, 8)
        unused = 0
    return (<long long> (bits << unused)) >> unused  # fills up with the sign


cdef inline Py_ssize_t plain_entry(bytearray node, Py_ssize_t at) except -1:
    cdef const unsigned char* start
    cdef const unsigned char* ms
    cdef const unsigned char* seq
    cdef const unsigned char* behind
    cdef const unsigned char* end
    _check(_length(node), at, 0)
    start = <const unsigned char*> PyByteArray_AS_STRING(node) + at
    end = start + (_length(node) - at)
    if end - start < 6 or start[0] != 2:
        return 0
    ms = start + 2
    seq = _behind(ms, end)
    if seq == NULL or not _is_int(ms) or ms[0] == 0xF4:
        return 0
    behind = _behind(seq, end)
    if behind == NULL or not _is_int(seq) or seq[0] > 0xF2:
        return 0
    return (_int_value(ms) * (1 << 28)) | (_int_value(seq) & 0xFFFFFF) << 4 | (behind - start)


cdef inline Py_ssize_t skip_elements(bytearray node, Py_ssize_t at, Py_ssize_t count) except -1:
    cdef const unsigned char* base
    cdef const unsigned char* place
    cdef const unsigned char* end
    _check(_length(node), at, 0)
    base = <const unsigned char*> PyByteArray_AS_STRING(node)
    end = base + _length(node)
    place = base + at
    while count > 0:
        place = _behind(place, end)
        if place == NULL:
            return 0
        count -= 1
    return place - base


# Writes the element as a bulk string before `line_end`. Copies a few bytes too many where both buffers have
# them: cheaper than calling memcpy.
cdef inline char* _put_element(char* line, const char* line_end, const unsigned char* place,
                               const unsigned char* end) except NULL:
    cdef Py_ssize_t size
    if (place[0] & 0xC0) != 0x80:
        return _put_other_element(line, line_end, place)
    _check(line_end - line, 0, 72)
    size = place[0] & 0x3F
    line = _put_head(line, 36, size)
    if size <= 16 and end - place > 16:
        memcpy(line, place + 1, 16)
    elif size <= 32 and end - place > 32:
        memcpy(line, place + 1, 32)
    else:
        memcpy(line, place + 1, size)
    line[size] = 13
    line[size + 1] = 10
    return line + size + 2


cdef inline char* _put_other_element(char* line, const char* line_end, const unsigned char* place) except NULL:
    cdef long long value
    cdef bint negative
    cdef unsigned long long magnitude
    cdef Py_ssize_t size
    if _is_int(place):
        value = _int_value(place)
        negative = value < 0
        magnitude = 0 - <unsigned long long> value if negative else <unsigned long long> value
        size = digits(magnitude) + negative
        _check(line_end - line, 0, size + 26)
        line = _put_head(line, 36, size)
        line[0] = 45
        _put_digits(line + size, magnitude)
    else:
        size = 0
        if place[0] < 0xF0:
            size = (<Py_ssize_t> place[0] & 0x0F) << 8 | place[1]
            place += 2
        else:
            memcpy(&size, place + 1, 4)
            place += 5
        _check(line_end - line, 0, size + 26)
        line = _put_head(line, 36, size)
        memcpy(line, place, size)
    line[size] = 13
    line[size + 1] = 10
    return line + size + 2


cdef inline Py_ssize_t put_fields(bytearray target, Py_ssize_t at, bytearray node, Py_ssize_t names_at,
                                  Py_ssize_t place, Py_ssize_t count) except -1:
    cdef char* start
    cdef char* line
    cdef const char* line_end
    cdef const unsigned char* name
    cdef const unsigned char* value
    cdef const unsigned char* behind
    cdef const unsigned char* end
    _check(_length(target), at, 0)
    _check(_length(node), names_at, 0)
    _check(_length(node), place, 0)
    start = PyByteArray_AS_STRING(target)
    line = start + at
    line_end = start + _length(target)
    value = <const unsigned char*> PyByteArray_AS_STRING(node) + place
    end = <const unsigned char*> PyByteArray_AS_STRING(node) + _length(node)
    name = value + (names_at - place)
    while count > 0:
        if names_at == 0:
            name = value
        behind = _behind(name, end)
        if behind == NULL:
            return 0
        line = _put_element(line, line_end, name, end)
        name = behind
        if names_at == 0:
            value = behind
        behind = _behind(value, end)
        if behind == NULL:
            return 0
        line = _put_element(line, line_end, value, end)
        value = behind
        count -= 1
    return line - start


cdef inline Py_ssize_t put_bulk_id(bytearray target, Py_ssize_t at, bytes prefix, unsigned long long seq) except -1:
    cdef Py_ssize_t first = _size(prefix)
    cdef Py_ssize_t second = digits(seq)
    cdef char* place
    _check(_length(target), at, first + 48)
    place = _put_head(PyByteArray_AS_STRING(target) + at, 36, first + second)
    memcpy(place, PyBytes_AS_STRING(prefix), first)
    _put_digits(place + first + second, seq)
    place += first + second
    place[0] = 13
    place[1] = 10
    return place + 2 - PyByteArray_AS_STRING(target)


cdef inline int put_id_prefix(bytearray prefix, unsigned long long ms) except -1:
    cdef char text[20]
    cdef char* start = _put_digits(text + 20, ms)
    cdef Py_ssize_t size = text + 20 - start
    cdef char* place
    _check(_length(prefix), 0, 24)
    place = PyByteArray_AS_STRING(prefix)
    memcpy(place, start, size)
    place[size] = 45
    place[23] = <char> (size + 1)
    return 0


cdef inline Py_ssize_t put_entry_head(bytearray target, Py_ssize_t at, bytearray prefix, unsigned long long seq,
                                      Py_ssize_t fields) except -1:
    cdef char* base
    cdef char* line
    cdef const char* text
    cdef Py_ssize_t size
    _check(_length(target), at, 96)
    _check(_length(prefix), 0, 24)
    text = PyByteArray_AS_STRING(prefix)
    _check(24, text[23], 0)
    size = text[23] + digits(seq)
    base = PyByteArray_AS_STRING(target)
    line = base + at
    memcpy(line, <const char*> b"*2\r\n", 4)
    line = _put_head(line + 4, 36, size)
    memcpy(line, text, 24)
    line += size
    _put_digits(line, seq)
    line[0] = 13
    line[1] = 10
    return _put_head(line + 2, 42, 2 * fields) - base


# Sixteen bytes per step: their loads do not wait for each other. A table has 2048 bytes.
cdef inline unsigned long long fold_crc(unsigned long long crc, bytearray tables, bytearray buffer,
                                        Py_ssize_t start, Py_ssize_t until) except? 0xFFFFFFFF:
    cdef const unsigned long long* table
    cdef const unsigned char* place
    cdef const unsigned char* end
    cdef unsigned long long word
    _check(_length(tables), 0, 32768)
    _check(_length(buffer), start, until - start)
    table = <const unsigned long long*> PyByteArray_AS_STRING(tables)
    place = <const unsigned char*> PyByteArray_AS_STRING(buffer) + start
    end = place + (until - start)
    while end - place >= 16:
        memcpy(&word, place, 8)
        crc = crc ^ word
        memcpy(&word, place + 8, 8)
        crc = (table[3840 + (crc & 255)] ^ table[3584 + (crc >> 8 & 255)]
               ^ table[3328 + (crc >> 16 & 255)] ^ table[3072 + (crc >> 24 & 255)]
               ^ table[2816 + (crc >> 32 & 255)] ^ table[2560 + (crc >> 40 & 255)]
               ^ table[2304 + (crc >> 48 & 255)] ^ table[2048 + (crc >> 56)]
               ^ table[1792 + (word & 255)] ^ table[1536 + (word >> 8 & 255)]
               ^ table[1280 + (word >> 16 & 255)] ^ table[1024 + (word >> 24 & 255)]
               ^ table[768 + (word >> 32 & 255)] ^ table[512 + (word >> 40 & 255)]
               ^ table[256 + (word >> 48 & 255)] ^ table[word >> 56])
        place += 16
    while place < end:
        crc = crc >> 8 ^ table[(crc ^ place[0]) & 255]
        place += 1
    return crc
