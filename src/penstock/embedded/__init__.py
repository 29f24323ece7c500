"""The embedded database: penstock in your own process, with the API of redis-py.

database       Database: the stream methods of redis-py
group_methods  the methods for groups and pending entries
key_methods    the methods for keys of any type
pipeline       Pipeline: several commands as one unit
opening        penstock.open()
signatures     the types of arguments and results
arguments      turns redis-py's arguments into a command
results        shapes replies as redis-py does
collector      collects what a quick form of a command writes
runner         runs commands one at a time, from any thread
transaction    runs the commands of a pipeline without releasing the lock
durability     keeps the data on disk
lock           the lock around the engine
thread_ident   the id of the current thread, without a Python object
thread_waiter  a blocked read
serving        Database.serve(): the same data on a socket

The API for asyncio is in penstock/aio.py.
"""
