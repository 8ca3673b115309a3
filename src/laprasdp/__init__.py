"""Answers a stream of counting queries over a private table under one differential-privacy budget."""

__version__ = "0.1.0"
