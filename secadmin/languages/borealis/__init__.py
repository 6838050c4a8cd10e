"""Query diagrams in Borealis XML."""
