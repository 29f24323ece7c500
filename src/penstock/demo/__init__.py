"""The demonstration behind `make run`.

run         the steps
orders      generates orders from a seed
producers   processes that send orders
children    the server and pipeline processes
accounting  compares the orders sent with those stored
show        the output on the terminal
"""
