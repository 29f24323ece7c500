import cython

from penstock.core.frame cimport Frame
from penstock.core.stream cimport Stream
from penstock.core.stream_id cimport StreamID
from penstock.engine.context cimport Context

@cython.locals(stream=Stream, ids=list, removed="long long", entry_id=StreamID)
cpdef object xdel(Context context, Frame frame)
