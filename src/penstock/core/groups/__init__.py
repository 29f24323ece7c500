"""Consumer groups of a stream.

group           consumers, pending entries, claiming, positions, lag
positions       how far a group has come, and whether that is certain
references      which entries the groups still need; trimming the others
pending_index   how many groups have an entry pending
"""
