"""`python3 -m deploy try`: a query on a few records, without a platform."""
