"""The subcommands, one module each.

serve      runs a server in the foreground
add        adds entries
tail       shows entries as they arrive
groups     shows groups and consumers
pending    shows pending entries
info       shows the server, its streams, one stream
inspect    shows the bytes of a stream
check      checks and repairs files
pipeline   runs or checks a pipeline
archive    shows or compacts a lake
replay     appends entries to a stream again
ui         runs the dashboard
worker     runs the handlers of an App
dead       shows dead letters, tries them again, removes them
retention  shows what retention removes
demo       runs the demonstration
"""
