"""Consumer groups of a stream.

group           consumers, pending entries, claiming, positions, lag
found           what its questions and claims return
positions       the rank of an id, and whether it is certain
references      which entries the groups still need; trimming the others
pending_index   how many groups have an entry pending
"""
