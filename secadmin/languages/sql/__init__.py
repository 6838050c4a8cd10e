"""Continuous queries in SQL."""
