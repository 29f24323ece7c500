"""Connections from the dashboard to the server.

asking   sends commands; writes only where allowed
links    connections to one server or to a cluster
"""
