"""Requests: access checks and URLs.

auth          checks every request and websocket
sessions      who is logged in: viewers and operators
guesses       limits wrong passwords
address       reads the query parameters of a URL
names         stream, group and consumer names in URLs
columns       remembers chosen columns in a cookie
time_range    the time range of charts
certificates  replaces the certificate while the dashboard runs
plain_page    pages without scripts
"""
