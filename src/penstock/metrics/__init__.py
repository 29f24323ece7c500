"""Metrics for Prometheus, as the server and workers expose them. Nothing here knows what is measured.

text              the text format: families, samples, histograms
histogram         counts durations in buckets
listener          a small HTTP listener on an event loop: GET only
loopback          hosts of this machine, against DNS rebinding
threaded          the same listener in a thread, for programs without an event loop
"""
