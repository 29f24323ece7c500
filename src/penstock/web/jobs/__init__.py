"""Programs that work on streams: Spark pipelines, and workers of penstock.work.

pipelines     what pipelines report, and what they rejected
flow          a pipeline as a flow from its source to its outputs
workers       handlers, and entries that fail
dead_letters  what workers gave up
"""
