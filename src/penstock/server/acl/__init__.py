"""Users and what they may do (ACL).

selector          rules about commands, keys, channels and consumer groups
foreign_commands  commands of Redis that do not exist here, in rules
user              one user: passwords, state, selectors
permissions       the check of a command, in a form that is fast; compiled
users             all users of a server, and the clients that they log in
user_file         the lines of users in `aclfile` and redis.conf
denial_log        ACL LOG
denials           the error replies for a refused command
"""
