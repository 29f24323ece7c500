# The arguments have any type. Declared functions are called without looking up a name.

from penstock.core.frame cimport Frame

cpdef list count(str command, entries)
cpdef list block(str command, timeout_ms)
cpdef list limits(str command, entries, max_count, max_size)
cpdef list streams(str command, ids_by_key)
cpdef dict checked_streams(str command, ids_by_key)
cpdef int put(Frame frame, value) except -1
