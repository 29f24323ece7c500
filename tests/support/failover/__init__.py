"""The failover campaign: servers under real Sentinels, clients that note every answer, and faults.

columns   kind of server, setting, number of servers
faults    what is done to a primary
clients   add entries, read a group and ack, through redis-py's Sentinel
judging   compares what clients were told with what is there
campaign  runs faults against servers while clients work
"""
