"""RESP2 and RESP3 without sockets: bytes to frames, replies to bytes."""
