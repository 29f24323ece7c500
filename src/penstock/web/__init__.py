"""The dashboard. Only pages/ uses NiceGUI.

app       starts the dashboard
board     what all pages share
charts    the options of charts
colours   all colours
refusal   Refused, the error that is shown to the user
server/   connections to the server
http/     URLs, passwords, plain pages
model/    what the pages show
changes/  changes to streams and groups, planned before they are made
pages/    the pages
"""
