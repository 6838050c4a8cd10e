"""The commands, a file for each noun; `secadmin.cli.main` puts them together."""
