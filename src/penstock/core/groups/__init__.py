"""Consumer groups of a stream.

group           consumers, pending entries, claiming, positions, lag
records         records of pending entries, consumers, options of a claim
positions       the rank of an id, and whether it is certain
references      which entries the groups still need; trimming the others
results         rows of pending entries, and the outcome of claims
pending_index   how many groups have an entry pending
"""
