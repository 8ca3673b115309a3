"""What is known so far, and the best next measurement; never sees data."""
