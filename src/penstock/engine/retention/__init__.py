"""How long a server keeps the entries of its streams, and its idle consumers.

amounts      sizes, counts and times as users write them: 1gb, 1m, 7d
policy       a rule of `stream-retention`: a pattern and its limits
group_needs  what each group of a stream still needs, counted
idle_groups  for how long nobody has read a group
cut          where a rule cuts a stream now, and which group keeps it from more
sweep        walks over all streams in small steps and trims them
"""
