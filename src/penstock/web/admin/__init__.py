"""What the pages about the server itself show, without NiceGUI.

replication    role, primary and replicas
slow_log       slow commands
clients        connections
configuration  settings
"""
