"""Running inside Spark: Java, SPARK_HOME, sessions, workers, readable errors.

session            builds a quiet local session
java               finds or installs Java
spark_home         a SPARK_HOME that starts workers quickly
worker_python      the Python that workers run
query_properties   how a task learns its query and batch
private_directory  a directory that no other user can prepare
short_errors       short tracebacks for errors that Spark shows
causes             the one line of a Spark error that matters
"""
