"""The table of largest entropy that has given tables of pairs: three attributes where only pairs matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laprasdp.arrays import Floats

_ROUNDS = 12  # of fitting each pair in turn
_LEAST = 1e-3  # of what independence gives: less is never thought to be in a cell of a pair


def widest(start: Floats, pairs: Sequence[Floats]) -> Floats:
    """
    A table of three attributes with given tables of pairs, by iterative proportional fitting.

    Parameters
    ----------
    start : (a, b, c) array
        Positive, of independent attributes; its sum is kept.
    pairs : (a, b), (a, c) and (b, c) arrays
        What is known of them; need not be positive, nor agree with one another exactly.

    Returns
    -------
    (a, b, c) array
        Positive.  It has a factor for each pair and none for all three; the last pair is met exactly, and
        all of them where they agree and the rounds suffice.

    References
    ----------
    Deming, Stephan.  On a least squares adjustment of a sampled frequency table when the expected marginal
    totals are known.  Ann. Math. Statist. 11 (1940).

    Examples
    --------
    >>> start = np.full((2, 2, 2), 1.0)
    >>> table = widest(start, [np.array([[3.0, 1], [1, 3]]), np.full((2, 2), 2.0), np.full((2, 2), 2.0)])
    >>> table[:, :, 0].round(6).tolist()
    [[1.5, 0.5], [0.5, 1.5]]
    """
    table, total = start, float(start.sum())
    goals = []
    for axis, pair in zip((2, 1, 0), pairs, strict=True):
        goal = np.maximum(pair, _LEAST * start.sum(axis=axis))
        goals.append((axis, goal * (total / goal.sum())))
    for _ in range(_ROUNDS):
        for axis, goal in goals:
            table = table * np.expand_dims(goal / table.sum(axis=axis), axis)
    return table
