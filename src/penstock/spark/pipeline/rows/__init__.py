"""The rows of a pipeline, as DataFrames.

json_payload   decodes a field with JSON into a struct
functions      SQL functions of pipelines, which do not fail for any value
defaults       the values of fields that an entry does not have
lookups        joins columns of static tables
id_filter      compares ids with positions
recent_keys    finds rows whose key occurred before
silver_stream  silver as a stream, for aggregates
frames         the DataFrame of each output
"""
