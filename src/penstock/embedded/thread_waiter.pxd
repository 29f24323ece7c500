# Compiled so that no signal handler of the program runs between two of its steps. Needs no C types.
