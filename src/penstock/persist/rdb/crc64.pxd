from penstock.core cimport memory

cdef bytearray _TABLES

# Every 64-bit value is a valid checksum, so the error value 0xffffffff needs a second look.
cpdef unsigned long long update(unsigned long long crc, bytearray buffer, Py_ssize_t start, Py_ssize_t until) except? 0xFFFFFFFF
