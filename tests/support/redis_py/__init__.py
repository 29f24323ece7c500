"""Programs written for redis-py: they run on the embedded database too.

scenario          a program that calls every stream method of redis-py
scenario_8        a program with the methods and options that Redis 8.2 to 8.6 added
key_scenario      a program that calls the key methods and pipelines of redis-py
"""
