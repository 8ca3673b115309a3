"""What queries say of single cells of a domain that is too large to list, and cells on which they add up.

The *pattern* of a cell is the weight of every query on it.  A query is a short sum of products of one
function an attribute, so the patterns of many cells are a few products of small arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats
from laprasdp.queries.columns import joint_classes
from laprasdp.queries.query import Query
from laprasdp.strategy.terms import terms
from laprasdp.strategy.threads import blas_threads

Cells = npt.NDArray[np.intp]

_BLOCK = 2**24  # numbers in one temporary array


class Patterns:
    """
    The patterns of some queries, by the joint classes of the levels of each attribute.

    Parameters
    ----------
    queries : sequence of m Query
        Over one domain.

    Attributes
    ----------
    axes : tuple of int
        The attributes that any query names, ascending.
    sizes : tuple of int
        Joint classes of each: levels that no query tells apart are one class.
    labels : tuple of (levels,) int arrays or Runs
        The class of each level.

    Notes
    -----
    A *cell* here is one class for each of `axes`.
    """

    def __init__(self, queries: Sequence[Query]) -> None:
        self.axes = tuple(sorted({axis for query in queries for axis in query.axes}))
        self.count = len(queries)
        found = [terms(query) for query in queries]
        self.owner = np.repeat(np.arange(self.count), [len(each.coefficients) for each in found])
        self._scale = np.concatenate([each.coefficients for each in found])
        self._factors, labels = list[Floats](), []  # (classes, terms) for each axis
        for axis in self.axes:
            named = [query.steps[query.axes.index(axis)] for query in queries if axis in query.axes]
            classes, joint = joint_classes(named)
            labels.append(joint)
            columns = iter(classes.T)  # the class of each joint class, for each query that names the axis
            table = []
            for query, each in zip(queries, found, strict=True):
                own = next(columns) if axis in query.axes else None
                wide = len(each.coefficients)
                plain = own is None or axis not in each.factors
                table.append(np.ones((len(classes), wide)) if plain else each.factors[axis].values[:, own].T)
            self._factors.append(np.concatenate(table, axis=1))
        self.labels, self.sizes = tuple(labels), tuple(map(len, self._factors))
        self._plain = len(self.owner) == self.count  # one term a query

    def random(self, count: int, rng: np.random.Generator) -> Cells:
        """(count, axes) cells: each on a query drawn at random, elsewhere uniform."""
        cells = rng.integers(np.array(self.sizes, dtype=np.intp), size=(count, len(self.axes)))
        for cell in cells:
            wanted = int(rng.integers(len(self.owner)))
            for place, factor in enumerate(self._factors):
                used = np.flatnonzero(factor[:, wanted])
                if len(used):
                    cell[place] = rng.choice(used)
        return cells

    def values(self, cells: Cells) -> Floats:
        """(cells, m) weight of each query on each cell."""
        return self._sums(self._products(cells))

    def climb(self, cells: Cells, form: Floats, sweeps: int = 8) -> tuple[Cells, Floats]:
        """
        Local maxima of the squared norm of ``form @ pattern``, one attribute after another.

        A move along an attribute is looked at through the queries that name it; the others stay.

        Parameters
        ----------
        cells : (c, axes) array
            Where to start.
        form : (r, m) array
        sweeps : int
            Times that all attributes are tried at most.

        Returns
        -------
        cells : (c, axes) array
        squares : (c,) array
            Squared norms there.
        """
        cells = cells.copy()
        with blas_threads(1):
            exact = np.ascontiguousarray((form[:, self.owner] * self._scale).T)  # (terms, r)
            wide = exact.astype(np.float32)  # twice as fast, and a maximum is found by it as well
            naming = [np.flatnonzero((factor != 1).any(axis=0)) for factor in self._factors]
            images = self._products(cells).astype(np.float32) @ wide  # (c, r)
            best = np.sum(images**2, axis=1)
            moving = np.arange(len(cells))
            for _ in range(sweeps):
                before = best[moving].copy()
                for place, (factor, own) in enumerate(zip(self._factors, naming, strict=True)):
                    step = max(1, _BLOCK // (len(factor) * max(wide.shape)))
                    for part in (moving[i : i + step] for i in range(0, len(moving), step)):
                        rest = self._products(cells[part], own, without=place)
                        ways = (rest[:, np.newaxis, :] * factor[:, own]).reshape(-1, len(own))
                        tried = ways.astype(np.float32) @ wide[own]
                        tried = tried.reshape(len(part), len(factor), -1)
                        here, now = np.arange(len(part)), cells[part, place]
                        tried += (images[part] - tried[here, now])[:, np.newaxis]
                        squares = np.einsum("pck,pck->pc", tried, tried)
                        cells[part, place] = now = squares.argmax(axis=1)
                        best[part], images[part] = squares[here, now], tried[here, now]
                moving = moving[best[moving] > before * (1 + 1e-6)]
                if not len(moving):
                    break
            best = np.sum((self._products(cells) @ exact) ** 2, axis=1)
        return cells, best

    def _products(self, cells: Cells, wanted: Cells | None = None, without: int = -1) -> Floats:
        """(cells, terms) products over the attributes, but for one; of the wanted terms."""
        total = np.ones((len(cells), len(self.owner) if wanted is None else len(wanted)))
        for place, factor in enumerate(self._factors):
            if place != without:
                total *= (factor if wanted is None else factor[:, wanted])[cells[:, place]]
        return total

    def _sums(self, products: Floats) -> Floats:
        scaled: Floats = products * self._scale
        if self._plain:
            return scaled
        found = np.zeros((len(products), self.count))
        np.add.at(found.T, self.owner, scaled.T)
        return found
