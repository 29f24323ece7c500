"""The PENSTOCK commands behind penstock.work: leases, retries, dead letters, delays.

arguments  the keys and the arguments of these commands
calls      ordinary commands that run inside one of these commands
rows       pending rows: whose they are, when they are due, where dead entries go
take       PENSTOCK TAKE, ADOPT, RENEW: a worker gets entries and keeps them
settle     PENSTOCK SETTLE: outcomes of a batch in one step
send       PENSTOCK SEND: delayed entries, and entries under a name that is used once
owners     PENSTOCK OWN, REAP: the owner of a keyed stream; consumers that are gone

All state is in ordinary keys: pending rows, streams, strings. The effects are ordinary commands, so Redis can
load the log. penstock.work.scripts does the same on other servers with scripts.

A row is due when its idle time reaches WINDOW_MS. So a lease of 30 s sets an idle time of WINDOW_MS minus
30 s, and a retry in 5 s sets WINDOW_MS minus 5 s: delivery times are always in the past, and every Redis
keeps them. A row that waits for its next attempt belongs to the consumer WAITING. A due row of any other
consumer is the row of a worker that died or stalled: its last attempt ended without an outcome.
"""
