"""The `penstock` command.

entry             starts the command; Ctrl-C is quiet from the start
main              the list of subcommands
server_start      runs a server with the arguments of `penstock serve`
connect           connections to a server
follow            reads entries for `tail`
spark_session     a Spark session that leaves the terminal alone
pipeline_metrics  metrics of a running pipeline
pipeline_draft    drafts the file of a pipeline from a sample of a stream
commands/         the subcommands
operate/          subcommands for operators
terminal/         input and output
inspect/          `penstock inspect`
"""
