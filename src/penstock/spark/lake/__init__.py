"""The lake: streams archived as Parquet.

archive     writes the batches of a streaming query
manifest    which files belong to the lake
columns     adds and checks columns
files       file operations through Hadoop's FileSystem
compaction  merges small files
trimming    trims archived entries from the server
lock        locks a lake on this machine
"""
