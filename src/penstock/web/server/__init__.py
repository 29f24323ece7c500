"""Connections from the dashboard to the servers.

named    the servers and their names
asking   sends commands; writes only where allowed
health   whether the server answers
links    connections to one server or to a cluster
"""
