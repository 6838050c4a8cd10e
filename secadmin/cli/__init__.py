"""The command line `secadmin`: everything that the HTTP API offers, for people and for scripts."""
