"""Writes the batches of a pipeline to their targets.

batches          writes each batch to the outputs of its query
preparing        adds the columns of lookups and marks duplicates before that
pinned_lookups   the same table for a batch that is repeated
duplicates       finds rows whose key was in silver before
upserts          writes a batch to an upsert table
sections         the outputs of sections [[output]]
jdbc             a table of a database
jdbc_statements  its SQL statements
calls            a Python function
failed_sql       finds the SQL that fails for a row of a batch
output_error     the error of an output
"""
