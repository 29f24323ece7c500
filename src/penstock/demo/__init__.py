"""The demonstration behind `make run`.

run         the steps
orders      the orders: same seed, same orders
producers   the processes that send orders
children    the server and the pipeline as processes
accounting  compares what was sent with what arrived
show        the output
"""
