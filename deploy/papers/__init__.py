"""The stories of the papers, each played on a fresh platform."""
