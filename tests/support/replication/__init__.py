"""Servers that follow each other.

links           waits for links, compares the data at both ends
proxy           a TCP proxy that can be cut, in one or both directions
false_primary   a primary that says what a test tells it to
false_sentinel  a Sentinel that names itself as the primary, and answers as a test tells it to
sentinels       two or three servers under three real Sentinels
writers         FAILOVER, and writers that follow it
"""
