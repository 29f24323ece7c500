"""What `penstock inspect` shows.

source   where the bytes come from: a server or a file
hexdump  the annotated hexdump
views    the views as text and JSON
"""
