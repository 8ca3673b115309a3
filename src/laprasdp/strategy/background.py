"""Second moments of queries that nobody predicted: what an unpredicted query looks like on average.

A *family* is a kind of query; its second moment over the cells, ``E[q qᵀ]``, is all that a design needs.
Families on one attribute combine to conjunctions over several by Kronecker products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.queries.domain import Domain


def random_moment(size: int) -> Floats:
    """Arbitrary 0/1 queries, each cell with probability one half: ``(I + 11ᵀ)/4``."""
    return (np.eye(size) + 1) / 4


def point_moment(size: int) -> Floats:
    """One cell, each as likely."""
    return np.eye(size) / size


def prefix_moment(size: int) -> Floats:
    """Cells up to a bound, each bound as likely."""
    place = np.arange(size)
    moment: Floats = (size - np.maximum.outer(place, place)) / size
    return moment


def range_moment(size: int) -> Floats:
    """A contiguous range, each of the ``n(n+1)/2`` as likely."""
    place = np.arange(size)
    low, high = np.minimum.outer(place, place) + 1, size - np.maximum.outer(place, place)
    moment: Floats = low * high * 2.0 / (size * (size + 1))
    return moment


FAMILIES: dict[str, Callable[[int], Floats]] = {
    "random": random_moment,
    "point": point_moment,
    "prefix": prefix_moment,
    "range": range_moment,
}


def cell_moment(domain: Domain, family: str) -> Floats:
    """
    Second moment of a family over all cells of a small domain.

    Parameters
    ----------
    domain : Domain
    family : str
        "random" is over the cells themselves; the others are conjunctions of one such predicate for each
        attribute, where each attribute is left out with probability one half.

    Returns
    -------
    (n, n) array
    """
    if family == "random" or len(domain) == 1:
        return FAMILIES[family](domain.size)
    parts = [(FAMILIES[family](size) + 1) / 2 for size in domain.shape]
    return reduce(_kron, parts)


def draw_vectors(domain: Domain, family: str, count: int, rng: np.random.Generator) -> Floats:
    """
    Queries of a family, to rehearse a stream with; nothing private is drawn.

    Returns
    -------
    (count, n) array of 0 and 1
    """
    if family == "random" or len(domain) == 1:
        return np.array([_predicate(domain.size, family, rng) for _ in range(count)])
    return np.array([_conjunction(domain.shape, family, rng) for _ in range(count)])


def _conjunction(shape: Sequence[int], family: str, rng: np.random.Generator) -> Floats:
    parts: list[Floats] = []
    for size in shape:
        parts.append(_predicate(size, family if rng.random() < 0.5 else "all", rng))
    return reduce(_kron, parts)


def _kron(left: Floats, right: Floats) -> Floats:
    return np.asarray(np.kron(left, right), dtype=np.float64)


def _predicate(size: int, family: str, rng: np.random.Generator) -> Floats:
    place = np.arange(size)
    chosen: npt.NDArray[np.bool_]
    if family == "all":
        chosen = np.ones(size, dtype=bool)
    elif family == "random":
        chosen = rng.random(size) < 0.5
    elif family == "point":
        chosen = place == rng.integers(size)
    elif family == "prefix":
        chosen = place <= rng.integers(size)
    else:
        low, high = np.sort(rng.choice(size + 1, 2, replace=False)).tolist()
        chosen = (place >= low) & (place < high)
    return np.asarray(chosen, dtype=np.float64)
