"""The server: sessions, sockets, settings, on an event loop of asyncio.

app                builds the parts of a server, connects them, runs and stops them
server             what all sessions share
turn               one iteration of the event loop: commands run, changes are logged, replies leave
cron               periodic work: expiry, retention, memory, idle clients
retention          trims streams and removes idle consumers, by the settings
durability         starts and stops the log and its sync thread; periodic work on it
saving/            snapshots and rewrites in child processes
replication/       replicas, and being one
disk_failure       refuses writes while the log cannot be written
lifecycle          requests to stop the server
loading            loads the data at start
reloading          loads the data again while the server runs
log                the log file
shared_log         the log of a served embedded database, as clients see it
log_waiters        clients that wait for an fsync (WAITAOF)
command_table      all commands of a server
command_catalogue  the replies of COMMAND
command_syntax     the arguments that COMMAND DOCS shows
acl/               users and what they may do
commands/          commands on clients and on the server
net/               sockets and connections
session/           one client, without its socket
config/            settings and redis.conf
stats/             counters, INFO, SLOWLOG, MONITOR, memory
supervision/       systemd, the background, the pid file
metrics/           Prometheus and health checks over HTTP
"""
