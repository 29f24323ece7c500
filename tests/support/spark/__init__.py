"""Lakes, pipelines and rows.

lake              a lake as its readers see it, and file operations that stop at a chosen one
pipeline_process  `penstock pipeline run` as a child process
dumb_columns      entries to rows by plain Python objects
former_pipeline   a pipeline in the layout before its query `main`
scripts           runs a script without an activated virtual environment
row_blobs         blobs of rows, made by a MessagePack library
"""
