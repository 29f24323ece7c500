from penstock.engine cimport wall_clock


# Signed: a clock before 1970 is odd, but must not become a time in the far future.
cdef class Clock:
    cpdef long long now_ms(self) except? -1


cdef class SystemClock(Clock):
    cpdef long long now_ms(self) except? -1


cdef class ManualClock(Clock):
    cdef public long long at_ms

    cpdef long long now_ms(self) except? -1
