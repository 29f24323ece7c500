"""The tests mirror src/penstock. Besides:

crash/         kill -9, power cuts, full disks, interrupts
differential/  the same commands on penstock and on a real Redis
model/         random operations beside a simple model in Python
real_clients/  redis-py, node-redis, redis-cli and redis-benchmark against a server
scripts/       golden scripts: commands and their replies as text
fixtures/      files of other versions
support/       code that several tests share
"""
