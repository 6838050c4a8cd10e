"""Plans as texts of the query languages, which give exactly these plans when they are read."""
