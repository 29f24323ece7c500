"""Engines without a server.

engines           runs commands on an engine and returns plain replies
streams           builds streams and reads all of one at once
groups            builds groups, and shows what they did
engine_state      all data of an engine as lines of text
script            runs golden scripts
effects           records the effects of commands, and replays them
keyspace_events   records keyspace events of an engine or of Redis
recorded          a recorded sequence of operations on streams and groups
stream_changes    the events, changes and broken watches of each stream command
id_texts          valid and invalid stream ids
unknown_commands  commands that do not exist, and Redis's errors for them
dumb_glob         glob patterns, matched in the simplest way
dumb_references   which entries groups need and trims remove, in the simplest way
"""
