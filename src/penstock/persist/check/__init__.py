"""Checks data files and repairs copies of them.

target   finds out what a path holds
files    reads the files and collects problems
report   the result of a check
repair   writes what could be read to a new place
"""
