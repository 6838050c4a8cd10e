"""The oracle: a small interpreter of plans that says what is right, without any engine."""
