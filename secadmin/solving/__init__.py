"""What a query's own conditions and those of policies leave of each other, decided by a solver."""
