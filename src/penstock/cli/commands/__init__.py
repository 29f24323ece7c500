"""The subcommands, one module each.

serve      a server in the foreground
add        adds entries
tail       shows entries as they arrive
groups     groups and consumers
pending    pending entries
info       the server, its streams, one stream
inspect    the bytes of a stream
check      checks and repairs files
pipeline   runs or checks a pipeline
archive    shows or compacts a lake
replay     sends entries again
ui         the dashboard
demo       everything at once
"""
