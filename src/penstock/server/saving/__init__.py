"""Snapshots and log rewrites of a running server, each written by a forked child.

child       the one child process that may run
snapshots   SAVE, BGSAVE and save points
rewrites    BGREWRITEAOF, automatic rewrites, and the fresh base after a disk failure
"""
