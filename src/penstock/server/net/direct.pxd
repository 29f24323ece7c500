# The C version of direct.py, inlined into the modules that use it: no bytes object and no view is made.

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE

cdef extern from "<sys/socket.h>" nogil:
    ssize_t _c_send "send"(int fd, const void* data, size_t size, int flags)
    int MSG_DONTWAIT
    int MSG_NOSIGNAL


# The interpreter lock is kept: the call only copies the bytes, and taking the lock again would cost more.
cdef inline Py_ssize_t send(int fd, bytearray buffer, Py_ssize_t size) except -1:
    cdef Py_ssize_t sent
    if buffer is None or size < 0 or size > PyByteArray_GET_SIZE(buffer):
        raise IndexError(f"{size} bytes of a buffer of {-1 if buffer is None else len(buffer)}")
    sent = _c_send(fd, PyByteArray_AS_STRING(buffer), size, MSG_DONTWAIT | MSG_NOSIGNAL)
    return 0 if sent < 0 else sent
