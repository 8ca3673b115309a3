"""Queries in a stack of terms that grows, as a belief keeps them."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from laprasdp.arrays import Floats
from laprasdp.strategy.terms import Terms


class Basis:
    """Queries in a stack of terms that grows; a copy shares the arrays until it grows itself."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.factors = [np.zeros((0, n)) for n in sizes]  # (room, levels) less the mean; 0 if not named
        self.means, self.coefficients = np.zeros((len(sizes), 0)), np.zeros(0)  # (axes, room), (room,)
        self.starts: list[int] = []
        self.terms, self.owned = 0, True

    def add(self, found: Terms) -> None:
        end = self.terms + len(found.coefficients)
        if end > len(self.coefficients) or not self.owned:
            room, used = 2 * end, slice(self.terms)
            self.factors = [moved(array[used], (room, array.shape[1])) for array in self.factors]
            self.means = moved(self.means[:, used], (len(self.means), room))
            self.coefficients = moved(self.coefficients[used], (room,))
            self.owned = True
        new = slice(self.terms, end)
        self.means[:, new] = 1
        for axis, factor in found.factors.items():
            mean = factor.mean(axis=1)
            self.means[axis, new] = mean
            self.factors[axis][new] = factor - mean[:, np.newaxis]
        self.coefficients[new] = found.coefficients
        self.starts.append(self.terms)
        self.terms = end

    def copy(self) -> Basis:
        other = copy.copy(self)
        other.starts, other.owned = list(self.starts), False
        return other


def moved(array: Floats, shape: tuple[int, ...]) -> Floats:
    """The array in the corner of a larger one."""
    return np.pad(array, [(0, wide - size) for size, wide in zip(array.shape, shape, strict=True)])
