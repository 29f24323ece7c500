"""Pipelines: TOML files that describe streaming queries.

definition/      reads the file and checks its keys; needs no Spark
rows/            the rows of each output, as DataFrames
targets/         writes each batch to the outputs of its query
rebuild/         computes silver and the aggregates again from bronze
operate/         status, stop and reset; the history of runs
server_check     finds problems that the server shows; needs no Spark
check            finds problems before a run, with the server and Spark
shape_check      lets Spark check [dedup], [[lookup]] and [[table]]
owner_check      finds lakes of another pipeline
section_check    finds problems of functions and databases
changes          changes of a file that existing tables can take
outputs          the outputs, and the streaming queries that write them
positions        the position of a query or an output in the source
joined_state     which outputs have joined their query
joining          lets new and former outputs catch up with their query
section_joining  the same for the outputs of sections [[output]]
run              runs all queries
progress         reports each batch
"""
