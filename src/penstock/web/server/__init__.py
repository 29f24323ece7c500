"""Connections from the dashboard to the server.

asking   sends commands; writes only where allowed
health   whether the server answers
links    connections to one server or to a cluster
"""
