"""The dashboard. Only elements/ and pages/ use NiceGUI.

app         starts the dashboard
board       what all pages of a server share
background  work that must not stop
metrics     metrics for Prometheus
charts      the options of charts
refusal     Refused, the error that is shown to the user
design/     colours, sizes and styles
server/     connections to the servers
http/       URLs, passwords, plain pages
model/      what the pages show
jobs/       Spark pipelines and workers
admin/      replication, clients, slow log, settings
watch/      key figures, and what is wrong with the server
changes/    changes to streams and groups, planned before they are made
elements/   what the pages are built from
pages/      the pages
"""
