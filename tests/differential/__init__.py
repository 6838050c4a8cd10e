"""The compiler and the fan-out against the oracle."""
