"""What the pages are built from, in NiceGUI.

frame        header, navigation and theme of every page
keys         the keys of a page and their help
parts        charts, headings and rows of controls
dialogs      dialogs in general
table        tables
flow         pipelines as flows
time_slider  a slider over the time of a stream
unconnected  deletes pages that no browser opened
"""
