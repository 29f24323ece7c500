"""`python -m penstock` is the `penstock` command."""

from penstock.cli.main import main

main()
