"""The sink: df.write and df.writeStream with format("penstock").

writer    the classes that Spark calls
options   the options of a write
rows      turns rows into the fields of entries
staging   stores rows until their batch is complete
commit    appends staged rows to their streams, exactly once
"""
