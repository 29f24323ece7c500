"""The lake: streams archived as Parquet, Delta or Iceberg.

formats         which format a table has, and its writer
table_formats/  Delta and Iceberg
archive         writes the batches of a streaming query as Parquet
manifest        which files belong to a Parquet lake
columns         adds and checks columns
column_types    which types may change, and to which
files           file operations, by the two below
local_files     file operations of a local lake, without Java
hadoop_files    file operations by Hadoop, for every other place
compaction      merges small files
widening        rewrites files with wider types
upsert          tables with one row for each key
trimming        trims archived entries from the server
lock            locks a lake on this machine
"""
