"""The demonstration of paper 003: event patterns of roles with different attribute rights."""
