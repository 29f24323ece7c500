"""Formats for people, shared by terminal and dashboard.

moment   reads times and durations
show     bytes as printable text
where    conditions on fields
"""
