"""Computes silver and the aggregates again from bronze, and swaps the new tables in.

from_archive  all steps
entries       the entries of bronze, as the source would read them
windows       the table and the checkpoint of an aggregate
swap          replaces directories by new ones, also after a crash
"""
