"""How long a server keeps the entries of its streams, and its idle consumers.

amounts.py      sizes, counts and times as users write them: 1gb, 1m, 7d
policy.py       a line of `stream-retention`: a pattern and its limits
group_needs.py  what each group of a stream still needs, counted
cut.py          where a policy cuts a stream now, and what stands in its way
sweep.py        walks over all streams in small steps and trims them
"""
