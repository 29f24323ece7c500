"""Commands that need the formats of this layer."""
