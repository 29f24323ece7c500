"""What the bytes of a stream mean: maps, memory explained, the tree; and where the bytes come from."""
