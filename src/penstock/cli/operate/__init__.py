"""Subcommands for operators, one module each.

doctor     finds what is wrong with a server or a data directory
"""
