"""Subcommands for operators, one module each.

backup            takes a backup of a server, and restores one
doctor            finds what is wrong with a server or a data directory
pipeline_control  shows, stops and resets a pipeline
"""
