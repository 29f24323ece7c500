# Compiled so that no signal handler of the program runs between two of its steps. Attributes have C types because an
# embedded call writes a batch.


cdef class Increment:
    cdef object _file
    cdef public long long synced
    cdef public unsigned int lines_crc

    cpdef int append(self, bytes data) except -1
    cpdef int sync(self) except -1
