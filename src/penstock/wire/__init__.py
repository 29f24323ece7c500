"""RESP2 and RESP3 without sockets: bytes to commands, replies to bytes.

parser       bytes to commands
command      a command to bytes
encoder      replies to bytes
quoting      quoted words, as in redis.conf and MONITOR
reply_walk   finds the end of each reply in a buffer of encoded replies
"""
