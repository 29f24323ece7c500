"""Operating a pipeline: what it has done, is it running, stop it, start over.

history    the runs of a pipeline
status     the state of a pipeline and its outputs
stopping   asks a running pipeline to stop
resetting  forgets outputs, so that the next run makes them again
"""
