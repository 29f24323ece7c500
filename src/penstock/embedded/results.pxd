# Replies have any type. Declared functions call each other without looking up a name.

import cython

from penstock.core.stream_cursor cimport EntryRange

cpdef object as_it_is(reply)
cpdef object entries(reply)
cpdef dict mapping(flat)
