"""The demonstration of paper 002: NEA, LTA and the weather (example 1)."""
