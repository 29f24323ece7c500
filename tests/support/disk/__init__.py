"""Disks and data directories.

fake_disk     a disk in memory that knows which bytes a power cut leaves
durable_work  random work on an engine with a store on such a disk
power_cuts    cuts the power at every step of that work
workload      clients that load a server until it is killed
producing     those that add entries, trim, and edit lists
consuming     those that read for groups, acknowledge, claim and delete
ledger        the replies that those clients got, and the commands without one
names         the messages that a stream must recognise
server_state  the keys that those clients use, and their data on a server
data_files    data files of penstock and Redis
fuzz_files    data directories for fuzz/files.py
"""
