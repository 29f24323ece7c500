# Compiled only for how they are made: one of these is part of every reply to a read.


cdef class Status:
    cdef readonly str text


cdef class Pairs:
    cdef readonly list items


cdef class Push:
    cdef readonly list items


cdef class Verbatim:
    cdef readonly bytes text


cdef class Double:
    cdef readonly double value


cdef class Members:
    cdef readonly list items


cdef class NullArray:
    pass


cdef class NoReply:
    pass


cdef class Served:
    cdef readonly list items
