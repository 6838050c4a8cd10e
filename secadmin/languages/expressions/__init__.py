"""Expressions as both languages write them: from a text to a typed tree of the allow-list."""
