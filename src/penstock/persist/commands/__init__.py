"""Commands that need the file formats.

dump   DUMP and RESTORE
"""
