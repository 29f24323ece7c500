"""The embedded database: penstock in your own process, with the API of redis-py.

database       Database: the methods of redis-py
opening        penstock.open()
runner         runs commands one at a time, from any thread
arguments      redis-py's arguments to the words of a command
results        replies to the values that redis-py returns
durability     keeps the data on disk
lock           the lock around a command
thread_ident   the id of the current thread, without a Python object
thread_waiter  a blocking read
serving        Database.serve(): the same data on a socket
"""
