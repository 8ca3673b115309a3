"""Measurements of time and accuracy; ``python -m benchmarks NAME``."""
