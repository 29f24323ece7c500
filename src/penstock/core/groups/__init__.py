"""Consumer groups of a stream.

group           consumers, pending entries, claiming, positions, lag
consumer        a reader in a group
records         records of pending entries, options of a claim
pending_list    records in the order of their ids
positions       the rank of an id, and whether it is certain
references      which entries the groups still need; trimming the others
results         rows of pending entries, and the outcome of claims
pending_index   how many groups have an entry pending
"""
