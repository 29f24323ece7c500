"""The stream commands.

append         XADD, XTRIM, XLEN
removal        XDEL
settings       XSETID
read           XRANGE, XREVRANGE, XREAD, XREADGROUP
groups         XGROUP, XACK
claims         XPENDING, XCLAIM, XAUTOCLAIM
info           XINFO
deliveries     the effects of delivering entries to a consumer
append_batch   PENSTOCK APPENDBATCH, the commit of an exactly-once sink
extension      PENSTOCK SPLITS, PENSTOCK NODES: bulk reading
"""
