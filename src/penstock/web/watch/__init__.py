"""What is collected from the server in the background, and what is wrong with it.

figures         key figures over time
info            the reply of INFO
group_watch     dead consumers and the age of pending entries
pipeline_watch  reports of pipelines, and pipelines that stand still
archive         history in a file
recorder        writes and reads the archive
thresholds      from which value on something is wrong
problems        what is wrong now
"""
