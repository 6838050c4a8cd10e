"""Expressions, which are the same in both languages: from a text to a typed expression."""
