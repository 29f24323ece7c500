import cython

from penstock.engine cimport wall_clock

cdef long long _US_PER_MS


# Signed: a clock before 1970 is unusual, but must not become a time in the far future.
cdef class Clock:
    cpdef long long now_us(self) except? -1
    cpdef long long steady_us(self) except? -1


cdef class SystemClock(Clock):
    cpdef long long now_us(self) except? -1
    cpdef long long steady_us(self) except? -1


cdef class ManualClock(Clock):
    cdef public long long at_ms
    cdef long long _stepped_ms

    cpdef long long now_us(self) except? -1
    cpdef long long steady_us(self) except? -1


cdef class Instant:
    cdef Clock _clock
    cdef readonly long long us
    cdef readonly long long ms

    cpdef long long steady_us(self) except? -1
    cpdef void rewind(self) except *
    @cython.locals(us="long long")
    cpdef int advance(self) except -1
