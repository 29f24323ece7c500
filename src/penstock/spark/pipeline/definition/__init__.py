"""The definition of a pipeline: its TOML file. Nothing here needs Spark or a server.

file            reads a pipeline file
columns         the section [schema]
shaping         reads [dedup], [[lookup]] and [[table]]
output_section  the sections [[output]]
toml_table      one table of the file: unknown keys, wrong types
toml_lines      finds the line of a key
names           how names are written
rules           names and targets that must not clash
shaping_rules   the rules of [dedup], [[lookup]] and [[table]]
"""
