"""Support for the tests of workers.

backends   the four backends, each empty
faults     backends that lose replies or fail
nodes      servers whose replies a test writes
waiting    waits for a condition
sequences  random sequences of work commands
campaign   workers that are killed, and the check of what they did
jobs       the App that the campaign runs
"""
