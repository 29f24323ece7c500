"""The pages of the dashboard, in NiceGUI.

overview        /overview: what is wrong, and key figures
streams         /streams
stream          /stream: the entries of a stream
stream_actions  the buttons of a stream
entry           the dialog of one entry
entry_form      text boxes for the fields of an entry
groups          /groups
group           /group
retention       /retention
columns         the dialog that chooses columns
export          /export
servers         /servers
jobs/           pipelines and workers
server/         replication, clients, slow log, configuration
structure       /structure
"""
