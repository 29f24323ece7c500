"""What is on disk: the log of effects, snapshots, and how they are read again. The only fsync."""
