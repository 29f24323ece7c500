"""The stream commands.

append              XADD, XTRIM, XLEN
removal             XDEL, XDELEX, XACKDEL
settings            XSETID, XCFGSET, XIDMPRECORD
ranges              XRANGE, XREVRANGE
read                XREAD, XREADGROUP
groups              XGROUP, XACK
claims              XPENDING, XCLAIM, XAUTOCLAIM, XNACK
info                XINFO
read_arguments      the arguments of XREAD and XREADGROUP
reference_options   KEEPREF, DELREF, ACKED: what happens to pending records of removed entries
deliveries          the effects of delivering entries to a consumer
append_batch        PENSTOCK APPENDBATCH, the commit of an exactly-once sink
extension           PENSTOCK SPLITS, PENSTOCK NODES: bulk reading
"""
