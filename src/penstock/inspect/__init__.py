"""What the bytes of a stream mean: maps of listpacks and nodes, memory explained, the tree, where bytes come from."""
