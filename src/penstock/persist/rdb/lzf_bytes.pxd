# The C version of lzf_bytes.py, inlined into lzf. Source and target are checked before every copy.

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.string cimport memcpy

from penstock.core.memory cimport _check, _length


# Pieces are short, so copies of a fixed size are quicker than exact ones. They may write more than they have
# to, but never outside of the target, and what is too much is overwritten by the next piece.
cdef inline Py_ssize_t expand(bytearray source, Py_ssize_t start, Py_ssize_t size, bytearray target) except -2:
    cdef const unsigned char* place
    cdef const unsigned char* end
    cdef const unsigned char* back
    cdef unsigned char* base
    cdef unsigned char* out
    cdef unsigned char* stop
    cdef unsigned char* until
    cdef Py_ssize_t control, count, distance
    _check(_length(source), start, size)
    place = <const unsigned char*> PyByteArray_AS_STRING(source) + start
    end = place + size
    base = <unsigned char*> PyByteArray_AS_STRING(target)
    out = base
    stop = base + _length(target)
    while place < end:
        control = place[0]
        place += 1
        if control < 32:
            count = control + 1
            if end - place >= 32 and stop - out >= 32:
                memcpy(out, place, 32)
            elif count <= end - place and count <= stop - out:
                memcpy(out, place, count)
            else:
                return -1
            place += count
            out += count
            continue
        count = (control >> 5) + 2
        if count == 9 and place < end:
            count += place[0]
            place += 1
        if place >= end:
            return -1
        distance = ((control & 31) << 8 | place[0]) + 1
        place += 1
        if distance > out - base or count > stop - out:
            return -1
        back = out - distance
        until = out + count
        if distance >= 8 and stop - until >= 8:
            while out < until:
                memcpy(out, back, 8)
                out += 8
                back += 8
        else:
            while out < until:
                out[0] = back[0]
                out += 1
                back += 1
        out = until
    return out - base
