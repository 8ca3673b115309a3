"""Predictions from logs: which statements the next stream will hold, and how often."""
