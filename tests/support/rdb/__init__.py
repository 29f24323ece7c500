"""RDB files and DUMP payloads.

by_hand        values of RDB files, byte by byte
whole_files    whole RDB files
dump_payloads  payloads of DUMP
"""
