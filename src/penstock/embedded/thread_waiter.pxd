# Compiled so that no signal handler of the program runs between two of its steps. It needs no C types.
