"""The pages of the dashboard, in NiceGUI.

overview        /overview: what is wrong, and key figures
streams         /streams
stream          /stream: the entries of a stream
stream_actions  the buttons of a stream
entry           the dialog of one entry
entry_form      text boxes for the fields of an entry
groups          /groups
group           /group
dead_letters    the dead letters of a stream
columns         the dialog that chooses columns
pipeline        /pipeline
redrive         the dialog that sends rejects back
export          /export
server/         replication, clients, slow log, configuration
structure       /structure
"""
