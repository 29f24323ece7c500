# Only functions that run for every entry have C types.

import cython

from penstock.core.frame cimport Frame
from penstock.core.groups.group cimport Consumer, Group
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID
from penstock.engine.context cimport Context

@cython.locals(group=Group)
cpdef Group group_or_none(Stream stream, bytes name)
@cython.locals(group=Group, ids=list, acknowledged="long long", entry_id=StreamID)
cpdef object xack(Context context, Frame frame)
cpdef Consumer make_consumer(Context context, bytes key, Group group, bytes name)
