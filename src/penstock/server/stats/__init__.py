"""What the server knows about itself.

startup        start time, ids and memory at start
info_sections  the sections of INFO
tally          counts and times commands
rates          commands and bytes per second
slow_log       the slowest commands
monitors       clients in MONITOR
redaction      hides passwords in MONITOR, SLOWLOG and CONFIG
process        memory and CPU time of the process
memory_usage   MEMORY USAGE: the size of a key
memory_guard   maxmemory
"""
