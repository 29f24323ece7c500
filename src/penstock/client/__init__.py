"""What redis-py lacks: reading streams in bulk, straight into columns."""
