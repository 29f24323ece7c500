"""Pipelines: TOML files that describe streaming queries.

file          reads a pipeline file
toml_table    one table of the file: unknown keys, wrong types
toml_lines    finds the line of a key
rules         names and targets that must not clash; needs only the file
server_check  finds problems that the server shows; needs no Spark
check         finds problems before a run, with the server and Spark
json_payload  decodes a field with JSON into a struct
functions     SQL functions that do not fail for any value
frames        the DataFrame of each output
outputs       the outputs, and the streaming queries that write them
positions     the position of a query or an output in the source
targets       writes each batch to the outputs of its query
joined_state  which streams have joined their query
joining       lets new and former outputs catch up with their query
run           runs all queries
progress      reports each batch
"""
