# The C version of wall_clock.py (see core/memory.pxd for the pattern).

from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec


cdef inline long long now_us() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <long long> now.tv_sec * 1000000 + now.tv_nsec // 1000


cdef inline long long steady_us() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <long long> now.tv_sec * 1000000 + now.tv_nsec // 1000
