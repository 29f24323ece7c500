"""The parts of `penstock inspect`.

source   reads nodes from a server or a file
hexdump  the annotated hexdump
views    the views as text and JSON
"""
