# The C version of thread_ident.py (see core/memory.pxd for the pattern).

from cpython.pythread cimport PyThread_get_thread_ident


cdef inline unsigned long current() noexcept:
    return <unsigned long> PyThread_get_thread_ident()
