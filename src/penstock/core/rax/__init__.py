"""Rax: the radix tree that finds a stream's nodes by id.

tree     Rax itself: find, insert, remove, iterate
cutting  removing many keys at once
heap     how nodes and values are stored in memory
view     inspecting a tree: walk, draw, check
"""
