"""What it costs: Gaussian DP, budgets in integers, the filter, and the only source of noise."""
