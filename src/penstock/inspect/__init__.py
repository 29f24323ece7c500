"""The bytes of a stream, explained.

files     streams from files
stored    the nodes of a stream as bytes
segments  a listpack, byte by byte
node_map  a stream node, element by element
memory    where the bytes of a stream are
tree      the rax of a stream
"""
