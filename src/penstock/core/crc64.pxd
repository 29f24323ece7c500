from penstock.core cimport memory

cdef bytearray _TABLES

# Any 64 bits are a checksum, so every value may also mean an error: 0xffffffff is asked about.
cpdef unsigned long long update(unsigned long long crc, bytearray buffer, Py_ssize_t start, Py_ssize_t until) except? 0xFFFFFFFF
