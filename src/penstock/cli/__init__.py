"""The terminal: `penstock`."""
