"""The data that pages show, without NiceGUI.

catalogue     all streams
stream_page   the entries of a stream, page by page
tailing       new entries of a stream
facts         a stream and its groups, from XINFO (the server computes the lag)
groups        groups: position, consumers, pending entries
pending_ages  pending entries by consumer and age
unknown_lag   why a lag is unknown
retention     what a retention rule would remove
time_line     places of ids between tail and head, by time
history       lag and pending entries over time
rates         rates and sparklines
structure     the tree and the bytes of a stream
exports       a selection as JSONL, CSV or Parquet
json_tree     a JSON value as a tree
values        field values as text, JSON or hex
"""
