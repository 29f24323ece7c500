"""The commands, by what they do; each module ends with its rows of the command table."""
