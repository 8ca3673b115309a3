"""How far a belief had come when an answer was told."""

from __future__ import annotations

from typing import NamedTuple


class Past(NamedTuple):
    """
    What a belief knew after its prior: the first so many of each.

    Attributes
    ----------
    rows : int
    blocks : int
        Blocks of groups.
    """

    rows: int
    blocks: int = 0
