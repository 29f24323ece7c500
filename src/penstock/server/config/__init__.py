"""Settings: the directives of redis.conf.

settings            the values in force
directives          the table of all directives
tls_directives      the directives of TLS
process_directives  those of the process and its log
foreign_directives  directives of Redis that are ignored or refused
kinds               types of values: numbers, sizes, enums, lists
file                reads and rewrites redis.conf
replication_directives  those of replication
apply               what happens when a setting changes
"""
