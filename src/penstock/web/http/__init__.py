"""Requests: who may see what, and how URLs are read.

auth        checks every request and websocket
guesses     limits wrong passwords
address     the query parameters of a URL
names       stream, group and consumer names in URLs
plain_page  pages without scripts
"""
