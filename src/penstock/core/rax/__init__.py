"""Rax: the radix tree that finds a stream's nodes by id.

tree        Rax itself: find, insert, remove, iterate
cutting     removing many keys at once
last_found  remembers the last value that was found by a word of a command
items       walking over all keys
heap        how nodes and values are stored in memory
view        inspecting a tree: walk, draw, check
"""
