"""The source: spark.read and spark.readStream with format("penstock").

data_source       the class that Spark loads
options           the options of a read
schema            the columns of a read
values            parses field bytes into typed values
reader_base       code that the readers share
batch_reader      a batch read
filters           filters that a batch read takes from Spark
exclusive_reader  a streaming read with offsets in Spark's checkpoint
shared_reader     a streaming read as one consumer of a group
partitions        partitions, and reading one
planning          which ids a batch covers, and its split into partitions
bounds            turns options into first and last ids
offsets           offsets as JSON
stream_state      asks servers about streams
file_reader       a batch read of RDB and AOF files
files             reads entries, pending entries and groups from files
"""
