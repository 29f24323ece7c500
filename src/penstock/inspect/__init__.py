"""Explains the bytes of a stream.

files     reads streams from files, DUMP payloads and raw listpacks
stored    the nodes of a stream as bytes
segments  splits a listpack into labelled bytes
node_map  decodes a stream node, element by element
memory    what the bytes of a stream are used for
tree      the rax of a stream
"""
