"""What will be asked: which statements the next stream holds and how often, learned from logs."""
