"""The scenario of seed 004 §4.1 (figures 8 to 10) on real data: Joe, Ed, Al and Bob."""
