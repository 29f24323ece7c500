# The C versions of spans.py, inlined into the modules that use them. As in memory.pxd, every access is checked
# to be inside its buffer: spans come from the parser, but a damaged span must raise, not read elsewhere.

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING
from libc.string cimport memcmp, memcpy

from penstock.core.memory cimport _check, _length, _size, key_pair

cdef enum:
    COUNT_BITS = 10
    ID_DIGITS_MAX = 19
    ENTRY_NUMBERS_BYTES = 40  # flags, two distances, the number of elements, the end byte: at most 37


# `kind`, one to three digits without a leading zero, CR LF: the number << 3 | size of the line, or -1. Six bytes
# are there: the shortest line, and what must follow it. Four of them are compared at once.
cdef inline Py_ssize_t _short_head(const unsigned char* line, unsigned char kind) noexcept:
    cdef unsigned int word
    cdef unsigned int number = <unsigned int> line[1] - 48
    cdef unsigned int digit
    memcpy(&word, line, 4)
    if (word & 0xFFFF00FFU) == (0x0A0D0000U | kind):
        return number << 3 | 4 if number <= 9 else -1
    digit = <unsigned int> line[2] - 48
    if line[0] != kind or number - 1 > 8 or digit > 9:
        return -1
    number = number * 10 + digit
    if line[3] == 13:
        return number << 3 | 5 if line[4] == 10 else -1
    digit = <unsigned int> line[3] - 48
    if digit > 9 or line[4] != 13 or line[5] != 10:
        return -1
    return (number * 10 + digit) << 3 | 6


cdef inline Py_ssize_t note_command(bytearray buffer, Py_ssize_t at, Py_ssize_t end, bytearray spans) except -1:
    cdef const unsigned char* base
    cdef const unsigned char* place
    cdef const unsigned char* stop
    cdef Py_ssize_t* span
    cdef Py_ssize_t* last
    cdef Py_ssize_t head, count, size
    cdef unsigned short line_end
    _check(_length(buffer), at, end - at)
    base = <const unsigned char*> PyByteArray_AS_STRING(buffer)
    place = base + at
    stop = base + end
    if stop - place < 6:
        return 0
    head = _short_head(place, 42)
    count = head >> 3
    if count <= 0 or 16 * count > _length(spans):
        return 0
    place += head & 7
    span = <Py_ssize_t*> PyByteArray_AS_STRING(spans)
    last = span + 2 * count
    while span < last:
        if stop - place < 6:
            return 0
        head = _short_head(place, 36)
        if head < 0:
            return 0
        place += head & 7
        size = head >> 3
        if stop - place < size + 2:
            return 0
        span[0] = place - base
        span[1] = size
        span += 2
        place += size
        memcpy(&line_end, place, 2)
        if line_end != 0x0A0D:
            return 0
        place += 2
    return (place - base) << COUNT_BITS | count


# Without a call for the short pieces that keys and names are.
cdef inline bint _is_equal(const unsigned char* left, const unsigned char* right, Py_ssize_t size) noexcept:
    cdef unsigned long long first, second, third, fourth
    cdef unsigned int head, other_head, tail, other_tail
    if size > 16:
        return memcmp(left, right, size) == 0
    if size >= 8:
        memcpy(&first, left, 8)
        memcpy(&second, right, 8)
        memcpy(&third, left + size - 8, 8)
        memcpy(&fourth, right + size - 8, 8)
        return ((first ^ second) | (third ^ fourth)) == 0
    if size >= 4:
        memcpy(&head, left, 4)
        memcpy(&other_head, right, 4)
        memcpy(&tail, left + size - 4, 4)
        memcpy(&other_tail, right + size - 4, 4)
        return ((head ^ other_head) | (tail ^ other_tail)) == 0
    while size:
        size -= 1
        if left[size] != right[size]:
            return False
    return True


cdef inline bint is_piece(bytearray buffer, bytearray spans, Py_ssize_t index, bytes data) except -1:
    cdef const Py_ssize_t* span
    _check(_length(spans), 16 * index, 16)
    span = <const Py_ssize_t*> PyByteArray_AS_STRING(spans) + 2 * index
    if span[1] != _size(data):
        _check(_length(buffer), 0, 0)
        return False
    _check(_length(buffer), span[0], span[1])
    return _is_equal(<const unsigned char*> PyByteArray_AS_STRING(buffer) + span[0],
                     <const unsigned char*> PyBytes_AS_STRING(data), span[1])


cdef inline bint is_char(bytearray buffer, bytearray spans, Py_ssize_t index, unsigned char char) except -1:
    cdef const Py_ssize_t* span
    _check(_length(spans), 16 * index, 16)
    span = <const Py_ssize_t*> PyByteArray_AS_STRING(spans) + 2 * index
    if span[1] != 1:
        _check(_length(buffer), 0, 0)
        return False
    _check(_length(buffer), span[0], 1)
    return <unsigned char> PyByteArray_AS_STRING(buffer)[span[0]] == char


cdef inline bint is_word(bytearray buffer, bytearray spans, Py_ssize_t index, bytes word) except -1:
    cdef const Py_ssize_t* span
    cdef const unsigned char* piece
    cdef const unsigned char* capitals
    cdef Py_ssize_t i, size
    cdef unsigned char char
    _check(_length(spans), 16 * index, 16)
    span = <const Py_ssize_t*> PyByteArray_AS_STRING(spans) + 2 * index
    size = span[1]
    if size != _size(word):
        _check(_length(buffer), 0, 0)
        return False
    _check(_length(buffer), span[0], size)
    piece = <const unsigned char*> PyByteArray_AS_STRING(buffer) + span[0]
    capitals = <const unsigned char*> PyBytes_AS_STRING(word)
    for i in range(size):
        char = piece[i]
        if 97 <= char <= 122:
            char -= 32
        if char != capitals[i]:
            return False
    return True


cdef inline unsigned long long word_at(bytearray buffer, bytearray spans, Py_ssize_t index) except? 0xFFFFFFFF:
    cdef const Py_ssize_t* span
    cdef const unsigned char* piece
    cdef unsigned long long found = 0
    cdef unsigned char char
    cdef Py_ssize_t i
    _check(_length(spans), 16 * index, 16)
    span = <const Py_ssize_t*> PyByteArray_AS_STRING(spans) + 2 * index
    _check(_length(buffer), span[0], span[1])
    if span[1] > 8:
        return 0
    piece = <const unsigned char*> PyByteArray_AS_STRING(buffer) + span[0]
    i = span[1]
    while i > 0:
        i -= 1
        char = piece[i]
        if char == 0:
            return 0
        if 97 <= char <= 122:
            char -= 32
        found = found << 8 | char
    return found


# One half of an id, up to 19 digits; returns where it ends. `text` if there is none.
cdef inline const unsigned char* _read_half(const unsigned char* text, const unsigned char* end,
                                            unsigned long long* half) noexcept:
    cdef const unsigned char* last = text + ID_DIGITS_MAX if end - text > ID_DIGITS_MAX else end
    cdef unsigned int digit
    half[0] = 0
    while text < last:
        digit = <unsigned int> text[0] - 48
        if digit > 9:
            break
        half[0] = half[0] * 10 + digit
        text += 1
    return text


cdef inline bytes id_key(bytearray buffer, Py_ssize_t start, Py_ssize_t size, unsigned long long missing_seq):
    cdef const unsigned char* text
    cdef const unsigned char* end
    cdef const unsigned char* behind
    cdef unsigned long long ms, seq
    _check(_length(buffer), start, size)
    text = <const unsigned char*> PyByteArray_AS_STRING(buffer) + start
    end = text + size
    behind = _read_half(text, end, &ms)
    if behind == text:
        return b""
    if behind == end:
        seq = missing_seq
    else:
        if behind[0] != 45:
            return b""
        text = behind + 1
        behind = _read_half(text, end, &seq)
        if behind == text or behind != end:
            return b""
    return key_pair(ms, seq)


# An integer as a listpack element: its encoding and one byte of backlen.
cdef inline unsigned char* _put_int(unsigned char* place, long long value) noexcept:
    cdef int size
    if 0 <= value < 128:
        place[0] = <unsigned char> value
        place[1] = 1
        return place + 2
    if -4096 <= value < 4096:
        place[0] = <unsigned char> (0xC0 | (value >> 8 & 0x1F))
        place[1] = <unsigned char> (value & 0xFF)
        place[2] = 2
        return place + 3
    if -32768 <= value < 32768:
        place[0] = 0xF1
        size = 2
    elif -8388608 <= value < 8388608:
        place[0] = 0xF2
        size = 3
    elif -2147483648LL <= value < 2147483648LL:
        place[0] = 0xF3
        size = 4
    else:
        place[0] = 0xF4
        size = 8
    memcpy(place + 1, &value, size)
    place[size + 1] = <unsigned char> (size + 1)
    return place + size + 2


# A text in the form of a 64-bit integer with at most 18 digits becomes that integer. 1: it did; 0: it is no
# integer; -1: it may be one with more digits.
cdef inline int _read_int(const unsigned char* piece, Py_ssize_t size, long long* value) noexcept:
    cdef Py_ssize_t i = 0
    cdef bint negative
    cdef unsigned int digit
    cdef long long number = 0
    if size == 0 or piece[0] > 57 or <unsigned int> piece[size - 1] - 48 > 9:
        return 0
    if size > 18:
        return -1 if size <= 20 else 0
    negative = piece[0] == 45
    if negative:
        i = 1
    if piece[i] == 48 and size > 1:
        return 0
    while i < size:
        digit = <unsigned int> piece[i] - 48
        if digit > 9:
            return 0
        number = number * 10 + digit
        i += 1
    value[0] = -number if negative else number
    return 1


cdef inline Py_ssize_t append_same_entry(bytearray node, long long ms_delta, long long seq_delta, bytearray spans,
                                         Py_ssize_t first, Py_ssize_t count, bytearray source,
                                         long long bytes_max, long long entries_max) except -1:
    cdef Py_ssize_t length = _length(node)
    cdef Py_ssize_t source_size = _length(source)
    cdef Py_ssize_t fields = (count - first) >> 1
    cdef Py_ssize_t raw = 0
    cdef Py_ssize_t size, name_size, used
    cdef const Py_ssize_t* span
    cdef const Py_ssize_t* last
    cdef const unsigned char* text
    cdef const unsigned char* name
    cdef const unsigned char* piece
    cdef unsigned char* base
    cdef unsigned char* place
    cdef unsigned char* end
    cdef unsigned int total
    cdef unsigned short elements
    cdef long long number
    cdef int kind
    _check(length, 0, 13)
    _check(source_size, 0, 0)
    _check(_length(spans), 16 * first, 16 * (count - first))
    base = <unsigned char*> PyByteArray_AS_STRING(node)
    memcpy(&total, base, 4)
    _check(length, total, 0)
    _check(total, 12, 1)
    # Live, deleted and the number of names take one byte each. The live one gets one more.
    if (base[6] >= 127 or base[8] > 127 or base[10] != fields or fields > 127
            or base[6] + base[8] >= entries_max or length - total < ENTRY_NUMBERS_BYTES):
        return 0
    text = <const unsigned char*> PyByteArray_AS_STRING(source)
    place = base + total - 1
    end = base + length
    place[0] = 2  # SAME
    place[1] = 1
    place = _put_int(_put_int(place + 2, ms_delta), seq_delta)
    name = base + 12
    span = <const Py_ssize_t*> PyByteArray_AS_STRING(spans) + 2 * first
    last = span + 4 * fields
    while span < last:
        name_size = span[1]
        size = span[3]
        if (name_size < 0 or name_size > 63 or name[0] != (0x80 | name_size)
                or name + name_size + 2 > base + total
                or span[0] < 0 or span[0] > source_size - name_size
                or size < 0 or span[2] < 0 or span[2] > source_size - size
                or end - place < size + ENTRY_NUMBERS_BYTES
                or not _is_equal(name + 1, text + span[0], name_size)):
            break
        piece = text + span[2]
        kind = _read_int(piece, size, &number)
        if kind == 1:
            place = _put_int(place, number)
        elif kind == 0 and size < 64:
            place[0] = <unsigned char> (0x80 | size)
            if size <= 16 and span[2] + 16 <= source_size:
                memcpy(place + 1, piece, 16)  # there is room for more, and this needs no call
            else:
                memcpy(place + 1, piece, size)
            place[size + 1] = <unsigned char> (size + 1)
            place += size + 2
        elif kind == 0 and size < 4096:
            place[0] = <unsigned char> (0xE0 | size >> 8)
            place[1] = <unsigned char> (size & 0xFF)
            memcpy(place + 2, piece, size)
            place += size + 2
            used = size + 2
            if used < 128:
                place[0] = <unsigned char> used
                place += 1
            else:
                place[0] = <unsigned char> (used >> 7)
                place[1] = <unsigned char> (used & 127 | 128)
                place += 2
        else:
            break
        name += name_size + 2
        raw += name_size + size
        span += 4
    if span < last or total + raw >= bytes_max:
        base[total - 1] = 255  # as it was; what follows is not part of the node
        return 0
    place = _put_int(place, fields + 3)
    place[0] = 255
    base[6] += 1
    total = <unsigned int> (place + 1 - base)
    memcpy(base, &total, 4)
    memcpy(&elements, base + 4, 2)
    elements = <unsigned short> min(65535, <int> elements + <int> fields + 4)
    memcpy(base + 4, &elements, 2)
    return total
