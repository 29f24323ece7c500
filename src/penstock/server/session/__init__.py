"""One client as the server sees it, without its socket.

session         one client: its state, waiting and ending
command_runner  runs the commands of a client
reply_buffer    the replies that are not sent yet
admission       the checks before a command runs
waiter          a blocked command
transaction     commands between MULTI and EXEC
pause           CLIENT PAUSE
states          the state bits of clients and servers
client_info     name, library, address of a client
client_line     a client as a line of CLIENT LIST
kill_filter     the conditions of CLIENT KILL
"""
