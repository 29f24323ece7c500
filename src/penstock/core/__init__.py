"""The structures: ids, frames, listpacks, rax, nodes, streams, groups. No clock, no I/O, no protocol."""
