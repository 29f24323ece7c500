"""Rax: the radix tree that finds a stream's nodes by id.

tree   Rax itself: find, insert, remove, iterate
heap   how nodes and values are stored in memory
last_found  remembers the last value that was found by a word of a command
view   inspecting a tree: walk, draw, check
"""
