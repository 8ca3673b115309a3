"""A fit: what a table near independence, seen by all releases so far, would answer; biased, often closer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.linalg

from laprasdp.arrays import Floats
from laprasdp.belief.grouped import GroupedBelief, joined
from laprasdp.belief.independence import Independence, Projected
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.strategy.threads import blas_threads

_ROWS = 4_096  # that a fit learns
_NUMBERS = 2**26  # that all of them hold together
_SINGLE = np.float32  # what is held; rows have unit noise, so its rounding is nothing beside that


class Fit:
    r"""
    The posterior of `Independence` after the rows that a belief has learned.

    Parameters
    ----------
    belief : GroupedBelief
        With its release.

    Raises
    ------
    ValueError
        As from `Independence`.

    Notes
    -----
    A row of unit noise that sees the prior as r has covariance :math:`\langle r,q\rangle` with a query; with
    L the Cholesky factor of the rows' covariance plus one, :math:`w=L^{-1}\langle r,q\rangle` gives mean
    :math:`m+w^\top u` and variance :math:`\langle q,q\rangle-w^\top w`, u being the whitened surprises.  A
    new row is one more row of L.  Blocks of many groups and queries that the belief has no prior of are no
    rows: what they say of a query is joined to it by inverse variances.

    References
    ----------
    Rasmussen, Williams.  Gaussian processes for machine learning (2006), algorithm 2.1.
    """

    def __init__(self, belief: GroupedBelief) -> None:
        self.prior = Independence(belief.prior, belief.released)
        self._first = belief.released[()]
        self._learned: list[object] = []  # releases, as the belief keeps them
        self._held: dict[object, _Held] = {}
        self._lower: Floats = np.zeros((0, 0))  # L, with room to grow
        self._surprise: Floats = np.zeros(0)
        self._numbers, self._full = 0, False

    def follow(self, belief: GroupedBelief) -> bool:
        """Learn what the belief has learned since; False where this fit is none of that belief's past."""
        known, releases = len(self._learned), belief.releases
        if belief.released[()] is not self._first or len(releases) < known:
            return False
        if known and releases[known - 1] is not self._learned[-1]:
            return False
        for release in releases[known:]:
            places, rows, values = release
            self._learn([belief.queries[place] for place in places], rows, values)
            self._learned.append(release)
        return True

    def estimate(self, query: Query) -> tuple[float, float] | None:
        """Value and variance; None where nothing is told of its attributes, or rows are too many."""
        seen = None if self._full else self.prior.see(query)
        if seen is None:
            return None
        along = self._whitened(self._covariances(seen.parts)[:, np.newaxis])[:, 0]
        variance = seen.variance
        left = max(variance - float(along @ along), 1e-12 * variance)
        return seen.mean + float(along @ self._surprise), left

    def estimates(self, groups: Groups) -> tuple[Floats, Floats] | None:
        """(g,) values of groups, with the variances that they had before any row; None as from `estimate`."""
        if self._full:
            return None
        k = len(self._surprise)
        lower = self._lower[:k, :k]
        pull = scipy.linalg.solve_triangular(lower, self._surprise, lower=True, trans="T") if k else lower[:0]
        learned = {
            key: (pull[held.places].astype(_SINGLE) @ held.rows).astype(float).reshape(self.prior.shape(key))
            for key, held in self._held.items()
            if isinstance(key, tuple)
        }
        return self.prior.told_each(groups, learned)

    def _learn(self, queries: Sequence[Query], rows: Floats, values: Floats) -> None:
        """More rows of unit noise over queries; left out where they name what the prior does not see."""
        seen = [one for one in map(self.prior.see, queries) if one is not None]
        if len(seen) < len(queries):
            return
        k, r, stacks = len(self._surprise), len(rows), _stacked(seen, rows)
        self._numbers += sum(stack.size for stack in stacks.values())
        self._full = self._full or k + r > _ROWS or self._numbers > _NUMBERS
        if self._full:
            return
        means = np.array([one.mean for one in seen])
        with blas_threads(min(k + 1, r)):
            inner = np.zeros((r, r))
            for stack in stacks.values():
                inner += stack @ stack.T
            along = self._whitened(self._with_rows(stacks, r).T).T  # (r, k)
            lower = np.linalg.cholesky(inner - along @ along.T + np.eye(r))
            surprise = values - rows @ means - along @ self._surprise
            surprise = scipy.linalg.solve_triangular(lower, surprise, lower=True)
        if k + r > len(self._lower):
            room = np.zeros((2 * (k + r), 2 * (k + r)))
            room[:k, :k] = self._lower[:k, :k]
            self._lower = room
        self._lower[k : k + r, :k], self._lower[k : k + r, k : k + r] = along, lower
        self._surprise = np.concatenate([self._surprise, surprise])
        for key, stack in stacks.items():
            self._held.setdefault(key, _Held(stack.shape[1])).add(np.arange(k, k + r), stack)

    def _with_rows(self, stacks: dict[object, Floats], count: int) -> Floats:
        """(count, k) covariances of new rows with the old ones."""
        found = np.zeros((count, len(self._surprise)))
        for key, stack in stacks.items():
            if key in self._held:
                held = self._held[key]
                found[:, held.places] += stack.astype(_SINGLE) @ held.rows.T
        return found

    def _covariances(self, parts: dict[object, Floats]) -> Floats:
        """(k,) covariances of a query with the rows."""
        return self._with_rows({key: part[np.newaxis] for key, part in parts.items()}, 1).reshape(-1)

    def _whitened(self, columns: Floats) -> Floats:
        """L⁻¹ times (k, c) columns."""
        k = len(self._surprise)
        if not k:
            return columns
        lower = self._lower[:k, :k]
        with blas_threads(min(columns.shape)):
            found = scipy.linalg.solve_triangular(lower, columns, lower=True, check_finite=False)
        return np.asarray(found, dtype=float)


class _Held:
    """What the rows see of one set, with room to grow."""

    def __init__(self, width: int) -> None:
        self._rows, self._places = np.zeros((0, width), _SINGLE), np.zeros(0, dtype=np.intp)
        self._count = 0

    @property
    def rows(self) -> npt.NDArray[np.float32]:
        return self._rows[: self._count]

    @property
    def places(self) -> npt.NDArray[np.intp]:
        return self._places[: self._count]

    def add(self, places: npt.NDArray[np.intp], rows: Floats) -> None:
        before, self._count = self._count, self._count + len(rows)
        if self._count > len(self._rows):
            more = 2 * self._count - len(self._rows)
            self._rows = np.concatenate([self._rows, np.zeros((more, rows.shape[1]), _SINGLE)])
            self._places = np.concatenate([self._places, np.zeros(more, dtype=np.intp)])
        self._rows[before : self._count], self._places[before : self._count] = rows, places


def _stacked(seen: Sequence[Projected], rows: Floats) -> dict[object, Floats]:
    """By set, (r, width) what combinations of queries see."""
    stacks = dict[object, Floats]()
    for key in dict.fromkeys(key for one in seen for key in one.parts):
        held = [place for place, one in enumerate(seen) if key in one.parts]
        stacks[key] = rows[:, held] @ np.stack([seen[place].parts[key] for place in held])
    return stacks


def fitted_each(
    fit: Fit, belief: GroupedBelief, groups: Groups, values: Floats, variances: Floats
) -> Floats | None:
    """`fitted_by` of many groups at once."""
    found = fit.estimates(groups)
    if found is None:
        return None
    beside = belief.beside_each(groups) if belief.covers(groups[0]) else [(values, variances)]
    for one in beside:
        found = joined(*found, *one)
    return np.asarray(found[0], dtype=float)


def fitted_by(fit: Fit, belief: GroupedBelief, query: Query, value: float, variance: float) -> float | None:
    """
    The fitted value of a query, from the posterior and from what the belief knows beside its rows.

    Parameters
    ----------
    value, variance : float
        What the belief says of it.
    """
    found = fit.estimate(query)
    if found is None:
        return None
    for one in [(value, variance)] if not belief.covers(query) else belief.beside(query):
        found = joined(*found, *one)
    return float(found[0])
