"""Decompresses LZF in one pass, without a report of what is wrong.

Like core/memory.py, this is not compiled: lzf uses the function of lzf_bytes.pxd. Plain Python has no quicker
way than the loop of lzf.decompress, which also finds what is wrong with damaged bytes. So it is left to that.
"""

from __future__ import annotations


def expand(source: bytearray, start: int, size: int, target: bytearray) -> int:
    """Decompress `size` bytes to the start of `target`; return how many were written.

    Returns -1 if the bytes are damaged or do not fit, and always in plain Python: the target is undefined.
    """
    return -1
