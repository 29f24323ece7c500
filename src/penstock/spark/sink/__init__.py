"""The sink: df.write and df.writeStream with format("penstock").

writer    what Spark calls to write
options   the options of a write
rows      rows to the fields of entries
staging   holds rows until their batch is complete
commit    moves staged rows to their streams, exactly once
"""
