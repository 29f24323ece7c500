"""How people read and type data. Shared by terminal and dashboard.

moment   times and durations
show     bytes as printable text
where    conditions on fields
"""
