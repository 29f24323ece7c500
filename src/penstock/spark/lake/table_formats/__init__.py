"""Tables in a table format: Delta and Iceberg.

table_log     the log of a table: what it stores
table_writer  writes batches to a table
delta         the log of Delta
iceberg       the log of Iceberg, and its catalog
reading       reads a table with Spark
"""
