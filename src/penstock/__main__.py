"""`python -m penstock` is the `penstock` command."""

from penstock.cli.entry import main

main()
