"""Linear comparators, and how well a score ranks and is calibrated."""
