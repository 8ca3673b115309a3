"""What to measure and what to answer, from public settings and releases; never sees data."""
