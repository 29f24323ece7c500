"""Lakes, pipelines and rows.

lake              a lake as its readers see it, and file operations that stop at a chosen one
tables            Delta and Iceberg tables as their readers see them, and writers that stop at a step
readers           reads a table across changes of its columns, with four readers
archive_query     archives a stream, here or in a child process
pipeline_process  `penstock pipeline run` as a child process
dumb_columns      entries to rows by plain Python objects
kill_campaign     a pipeline with every kind of target, whose processes are killed
former_pipeline   a pipeline in the layout before its query `main`
scripts           runs a script without an activated virtual environment
databases         PostgreSQL and SQLite
row_blobs         blobs of rows, made by a MessagePack library
"""
