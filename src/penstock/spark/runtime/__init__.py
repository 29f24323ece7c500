"""Starting Spark: Java, SPARK_HOME, sessions, readable errors.

session            a quiet local session
java               finds or installs Java
worker_python      the Python that workers run
spark_home         a SPARK_HOME that starts workers quickly
private_directory  a directory that no other user can prepare
causes             one line from Spark's stack traces
"""
