"""
The paper's experiments, on public and simulated tables; ``python -m experiments NAME``.

Everything here studies the mechanism, so tables are public, generators are NumPy's and noise is seeded.
"""
