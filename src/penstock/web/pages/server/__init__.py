"""The pages about the server itself.

replication    /replication
slow_log       /slowlog
clients        /clients
configuration  /configuration
"""
