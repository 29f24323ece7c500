"""Input and output of the commands.

output            lines and tables on stdout
outcome           errors and exit codes
progress          progress on stderr
entries           entries with their stream
entry_line        an entry as a line of text
json_input        entries from JSON lines
moment            times and durations as options
where             conditions as options
pipeline_display  the table of a running pipeline
"""
