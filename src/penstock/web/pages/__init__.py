"""The pages of the dashboard, in NiceGUI.

frame           header, footer and theme of every page
streams         /streams
stream          /stream: the entries of a stream
stream_actions  the buttons of a stream
entry           the dialog of one entry
entry_form      text boxes for the fields of an entry
groups          /groups
group           /group
pipeline        /pipeline
redrive         the dialog that sends rejects back
export          /export
structure       /structure
dialogs         dialogs in general
table           tables
"""
