"""What a command means: keyspace, command table, execution, waiting readers. No wire, no disk."""
