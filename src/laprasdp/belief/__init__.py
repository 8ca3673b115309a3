"""What is known about the table: a Gaussian belief, conditioned on every release; never sees data."""
