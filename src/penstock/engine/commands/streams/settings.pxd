# Compiled so that no signal handler runs between two steps of a command. It needs no C types.
