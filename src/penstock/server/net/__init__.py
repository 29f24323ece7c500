"""Sockets: listening, connections, buffers, limits.

listener        listens, and accepts or refuses connections
tls             contexts for TLS, and new certificates while the server runs
certificate     when a certificate expires
tls_listener    accepts the clients of tls-port
announcement    log lines at start: URLs of the server, missing protection
connection      one connection: takes turns, runs commands, closes
receiver        receive buffers and parser of a client
buffered        a connection for asyncio's own event loop
direct          sends to a socket without the event loop
link            what a session needs from its connection
backlog         connections that have more to do after their time slice
output_limits   client-output-buffer-limit
client_memory   maxmemory-clients: memory of client buffers
strangers       connections that have not authenticated yet (auth-timeout)
"""
