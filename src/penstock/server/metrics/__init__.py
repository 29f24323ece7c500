"""Metrics of a server for Prometheus, and its health checks (`metrics-port`).

endpoint   answers /metrics, /healthz, /readyz
figures    commands, clients, memory, disk, log, replication
streams    streams and groups, collected a part at a time
pace       lets the event loop serve clients between two parts
"""
