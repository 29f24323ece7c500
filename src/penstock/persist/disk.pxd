# Compiled so that no signal handler of the program runs between two of its steps. The attributes of a file have C
# types because an embedded call writes to one.


cdef class SystemFile:
    cdef int _fd
    cdef readonly long long size

    cpdef int write(self, object data) except -1
