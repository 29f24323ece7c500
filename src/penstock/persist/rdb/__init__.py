"""RDB files and the payloads of DUMP. docs/formats/rdb.md shows the bytes.

format      the constants: opcodes, value types, length encodings
input       reads lengths, strings and numbers
output      writes lengths, strings and numbers
reader      reads a whole file, key by key
writer      writes a whole file
value       reads the value of a key: string, list, stream
stream      reads and writes streams
node_check  checks the bytes of nodes before they are used
skip        skips values without building them
salvage     finds the keys after a damaged value
ziplist     reads the list encoding of Redis before 7.0
dump        the payloads of DUMP and RESTORE
crc64       the checksum of a file
lzf         the compression of long strings
lzf_bytes   the function that decompresses them in one pass
"""
