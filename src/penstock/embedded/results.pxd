# Replies are of any kind: the types only spare the calls between these functions their detour.

import cython

from penstock.core.stream cimport EntryRange

cpdef object as_it_is(reply)
cpdef object entries(reply)
cpdef dict mapping(flat)
