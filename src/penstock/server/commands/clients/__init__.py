"""Commands on connections and users.

connection      PING, ECHO, SELECT, AUTH, HELLO, RESET, QUIT
acl             ACL
client          CLIENT
client_rows     the rows of CLIENT in the command table
"""
