"""The `penstock` command.

main           the list of subcommands
connect        from a URL to a connection
follow         the entries of `tail`
spark_session  Spark for the commands that need it
commands/      the subcommands
terminal/      input and output
inspect/       `penstock inspect`
"""
