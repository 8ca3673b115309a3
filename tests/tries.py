"""How much the gate tries of what could be tried for hours; `make test-long` tries four times as much."""

import os


def tries(count: int) -> int:
    """So many examples in the gate, and LAPRAS_TRIES times as many."""
    return count * int(os.environ.get("LAPRAS_TRIES", "1"))
