from penstock.core.frame cimport Frame

cpdef int option_at(Frame frame, Py_ssize_t at) except -1
