r"""A prior that begins at independence: how far each set of attributes departs from it, told by a release.

A table is near the product of its one-way marginals, and departs from it set by set.  What was released of a
set is its departure and noise; rotated, their likelihood is a product, which tells how far the set departs.
Nothing is ever as large as the domain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy.optimize

from laprasdp.arrays import Floats
from laprasdp.belief.entropy import widest
from laprasdp.queries.attribute import Categories
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.queries.runs import Labels, unpacked
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.subspaces import Axes, subsets, tensor_of

_LEAST = 0.5  # rows that a level is thought to have at least
_VAGUE = 1e4  # strength of the one-way parts: all that is known of them is what was released
_POWERS = (0.75, 1.25, 1.5, 1.75, 2.0)  # of a level's share, in the deviation of its departure
_REACHES = (1.0, 2.0, 4.0, 8.0)  # levels over which the departures of an ordered attribute are alike
_SWEEPS = 2
_BOUNDS = (-12.0, 16.0)  # of the logarithm of a strength
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of where pairs alone would put a set of three
_MOST_AXES = 6  # of a query that has parts in sets that were not released


class Projected(NamedTuple):
    """A query as the prior sees it."""

    mean: float
    parts: dict[object, Floats]  # by set; the covariance of two queries is the sum of inner products

    @property
    def variance(self) -> float:
        """Before any row."""
        return math.fsum(float(part @ part) for part in self.parts.values())


@dataclass(frozen=True, eq=False)
class Margin:
    """
    One attribute: the share of each level, and how functions of its levels depart from their mean.

    Attributes
    ----------
    shares : (n,) array
        Positive, of sum one.
    basis : (n, r) array
        B: departures are Bξ with ξ of independent unit variables; each column sums to zero.
    rotation : (r, r) array
        U, orthogonal, with ``F B = U √spectrum`` for the factor F that was released.
    spectrum : (r,) array
    """

    shares: Floats
    basis: Floats
    rotation: Floats
    spectrum: Floats

    @classmethod
    def of(cls, shares: Floats, factor: Floats, power: float = 1.0, reach: float = 0.0) -> Self:
        """
        The margin of an attribute.

        Parameters
        ----------
        power : float
            The variance of a level's departure goes with this power of its share; 1 is that of counts.
        reach : float
            Over so many levels correlations fall to 1/e; 0 for none.
        """
        root = np.diag(shares ** (power / 2))
        if reach:
            levels = np.arange(len(shares))
            root = root @ np.linalg.cholesky(np.exp(-np.abs(levels[:, np.newaxis] - levels) / reach))
        root = root - np.outer(shares, root.sum(axis=0))
        root *= math.sqrt((1 - float(shares @ shares)) / max(float((root**2).sum()), 1e-300))
        rotation, values, along = np.linalg.svd(factor @ root, full_matrices=False)
        return cls(shares, root @ along.T, rotation, values**2)

    @cached_property
    def inverse(self) -> Floats:
        """(r, n) the coordinates of a departure."""
        return np.asarray(np.linalg.pinv(self.basis))


class Independence:
    r"""
    What a released `Marginals` says of a table that is thought to be near the product of its marginals.

    Parameters
    ----------
    prior : Marginals
    released : mapping of set of axes to array
        Its values, as `Marginals.split` gives them; long attributes are left out.

    Attributes
    ----------
    strengths : dict of set to float
        :math:`v_s`, how far each set departs, in units of independent counts.
    means, weights : dict of set to array
        Mean and deviation of the departure of each set, an entry for each column of the bases.

    Raises
    ------
    ValueError
        The release does not tell the number of rows, or nothing of two attributes together.

    Notes
    -----
    With N rows of shares :math:`p_i`, :math:`x=N\bigotimes_ip_i+\sum_{|s|\ge1}\sqrt{v_sN}
    \bigotimes_{i\in s}B_i\xi_s\bigotimes_{i\notin s}p_i` and :math:`\xi_s` of independent unit variables:
    the Gaussian form of a Kullback-Leibler penalty of weight :math:`1/v_s` towards independence
    (:math:`\sum_c(x_c-Np_c)^2/(2Np_c)` to second order where :math:`B_iB_i^\top` is
    :math:`\mathrm{diag}(p_i)-p_ip_i^\top`).  The release measures
    :math:`y_s=g_s\bigotimes_{i\in s}F_iM_sx+` unit noise.  Less what the smaller sets explain and rotated by
    :math:`\bigotimes U_i` it is independent with variances :math:`1+h^2`,
    :math:`h^2=g_s^2v_sN\prod\lambda_i`: that is the likelihood by which :math:`v_s` and the form of each
    :math:`B_i` are chosen, and :math:`\xi_s` has mean :math:`hz/(1+h^2)` and variance :math:`1/(1+h^2)`.
    Smaller sets are taken as their means.  A set of three departs from where the table of largest entropy
    with its pairs is, or from a share of that, whichever is likelier: what is nowhere in a pair is nowhere
    in a set of three.

    **Privacy.**  A function of released numbers and public settings: it costs nothing.

    References
    ----------
    Empirical Bayes for variance components: Searle, Casella, McCulloch (1992), chapter 9.  Private-PGM
    (McKenna, Sheldon, Miklau, ICML 2019) fits a table near independence to noisy marginals, too.
    """

    def __init__(self, prior: Marginals, released: Mapping[Axes, Floats]) -> None:
        self.domain = prior.domain
        gains = {s: c / 2.0**prior.bits for s, c in zip(prior.sets, prior.multipliers, strict=True)}
        self._gains = {s: gains[s] for s in sorted(released, key=lambda s: (len(s), s))}
        if () not in released:
            raise ValueError("the release does not tell the number of rows")
        self.rows = max(float(released[()]) / gains[()], 1.0)
        self._factors: dict[int, Floats] = {}
        self.margins: dict[int, Margin] = {}
        for (axis,) in (s for s in self._gains if len(s) == 1):
            factor = self._factors[axis] = np.asarray(prior.factors[axis], dtype=float)
            counts = np.linalg.pinv(factor) @ released[axis,] / gains[axis,] + self.rows / factor.shape[1]
            counts = np.maximum(counts, _LEAST)
            self.margins[axis] = Margin.of(counts / counts.sum(), factor)
        self._gains = {s: gain for s, gain in self._gains.items() if self.margins.keys() >= set(s)}
        if not any(len(s) > 1 for s in self._gains):
            raise ValueError("the release tells nothing of two attributes together")
        for _ in range(_SWEEPS):
            for axis in self.margins:
                self._form(axis, released)
        self.strengths: dict[Axes, float] = {(): 0.0}
        self.means: dict[Axes, Floats] = {(): np.array(0.0)}
        self.weights: dict[Axes, Floats] = {(): np.array(1 / gains[()])}
        tables: dict[Axes, Floats] = {(): np.array(self.rows)}
        for s in self._gains:
            if s:
                values = self._rotated(s, released[s], tables)
                tables[s] = self._learn(s, values, self._middle(s, tables))
        order = max(map(len, self._gains))
        self._other = max(v for s, v in self.strengths.items() if len(s) == order)

    def see(self, query: Query) -> Projected | None:
        """
        A query, or None where it names an attribute of which the release tells nothing.

        Notes
        -----
        Its parts in sets that were not released are as strong as any of the largest sets that were, and
        nothing else tells of them.
        """
        if not self.margins.keys() >= set(query.axes):
            return None
        sets = subsets(query.axes)
        own = [s for s in sets if s not in self.means]
        if own and len(query.axes) > _MOST_AXES:
            return None
        inside, outside = self._contracted(query)
        mean, parts = 0.0, dict[object, Floats]()
        for s in sets:
            if s not in self.means:
                continue
            part = tensor_of(query).astype(float)
            for axis in query.axes:  # contracting the first axis puts its result last
                part = np.tensordot(part, inside[axis] if axis in s else outside[axis], axes=(0, 0))
            mean += float((part * self.means[s]).sum()) if s else self.rows * float(part)
            parts[s] = np.asarray(part * self.weights[s]).reshape(-1)
        if own:
            grams = {axis: one @ one.T for axis, one in inside.items()}
            means = {axis: np.outer(one, one) for axis, one in outside.items()}
            square = math.fsum(
                _square(query, {axis: (grams if axis in s else means)[axis] for axis in query.axes})
                for s in own
            )
            parts[query.mark] = np.array([math.sqrt(max(square, 0.0) * self._other * self.rows)])
        return Projected(mean, parts)

    def told_each(self, groups: Groups, learned: Mapping[Axes, Floats]) -> tuple[Floats, Floats] | None:
        """
        Values and variances of groups before any row, or None where they name what the release does not.

        Parameters
        ----------
        learned : mapping of set to array
            What rows add to the mean of each set, in units of its deviation; only the values hang on it.

        Returns
        -------
        (g,) array, (g,) array
            What a group alone was measured for is not in it.
        """
        if not self.margins.keys() >= set(groups.axes) or len(groups.axes) > _MOST_AXES:
            return None
        values, variances, by = np.zeros(len(groups)), np.zeros(len(groups)), set(groups.by)
        for function, where in groups.slices:
            inside, outside = self._contracted(function)
            levels = {a: one[where] for a, one in zip(groups.by, groups.levels, strict=True)}
            for s in subsets(groups.axes):
                if not set(s) <= by | set(function.axes):
                    continue
                rest = [axis for axis in s if axis not in by]
                part = tensor_of(function).astype(float)
                for axis in function.axes:
                    part = np.tensordot(part, inside[axis] if axis in s else outside[axis], axes=(0, 0))
                outer = [axis for axis in s if axis in by]
                apart = np.ones(len(where))
                for axis in by - set(s):
                    apart = apart * self.margins[axis].shares[levels[axis]]
                if s not in self.weights:
                    square = float((part**2).sum()) * self._other * self.rows
                    for axis in outer:
                        apart = apart * np.sqrt((self.margins[axis].basis[levels[axis]] ** 2).sum(axis=1))
                    variances[where] += square * apart**2
                    continue
                weights = self.weights[s]
                mean = self.means[s] + weights * learned.get(s, 0.0) + (0.0 if s else self.rows)
                order = [s.index(axis) for axis in outer + rest]
                for found, tensor, power in ((values, mean, 1), (variances, weights**2, 2)):
                    told = np.tensordot(tensor.transpose(order), part**power, axes=len(rest))
                    for axis in outer:  # contracting the first axis puts its levels last
                        told = np.tensordot(told, self.margins[axis].basis ** power, axes=(0, 1))
                    found[where] += told[tuple(levels[axis] for axis in outer)] * apart**power
        return values, variances

    def shape(self, s: Axes) -> tuple[int, ...]:
        """Of the departures of a released set."""
        return self.weights[s].shape

    def _contracted(self, query: Query) -> tuple[dict[int, Floats], dict[int, Floats]]:
        """(classes, r) departures and (classes,) share of each class of each attribute."""
        inside, outside = {}, {}
        for axis, labels, classes in zip(query.axes, query.steps, tensor_of(query).shape, strict=True):
            margin = self.margins[axis]
            joined = _classes(labels, classes)
            inside[axis], outside[axis] = joined @ margin.basis, joined @ margin.shares
        return inside, outside

    def _form(self, axis: int, released: Mapping[Axes, Floats]) -> None:
        """Choose power and reach of one attribute by the likelihood of the pairs that it is in."""
        pairs = [s for s in self._gains if len(s) == 2 and axis in s]
        ordered = not isinstance(self.domain[self.domain.names[axis]], Categories)
        shares, factor, best = self.margins[axis].shares, self._factors[axis], -math.inf
        chosen, power, reach = self.margins[axis], 1.0, 0.0
        forms = [(p, None) for p in (1.0, *_POWERS)] + [(None, r) for r in _REACHES if ordered]
        for given_power, given_reach in forms if pairs else ():
            form = (power if given_power is None else given_power, given_reach or reach)
            self.margins[axis] = Margin.of(shares, factor, *form)
            found = math.fsum(self._likelihood(s, released[s]) for s in pairs)
            if found > best + 1e-6:
                best, chosen, (power, reach) = found, self.margins[axis], form
        self.margins[axis] = chosen

    def _likelihood(self, pair: Axes, values: Floats) -> float:
        """Logarithm, less a constant, for the strength that makes it largest."""
        values = self._rotated(pair, values, {(): np.array(self.rows)})
        return -_strongest(values**2, self._reach_of(pair))[1]

    def _rotated(self, s: Axes, values: Floats, tables: Mapping[Axes, Floats]) -> Floats:
        """What was released of a set, less what smaller sets explain, so that its entries are independent."""
        explained = np.zeros([len(self.margins[axis].shares) for axis in s])
        for size in range(len(s)):
            for t in itertools.combinations(s, size):
                if t in tables:
                    explained += self._spread(s, t, tables[t])
        for axis in s:
            explained = np.tensordot(explained, self._factors[axis], axes=(0, 1))
        values = values - self._gains[s] * explained
        for axis in s:
            values = np.tensordot(values, self.margins[axis].rotation, axes=(0, 0))
        return values

    def _spread(self, s: Axes, t: Axes, table: Floats) -> Floats:
        """The table of a smaller set over the levels of a larger one, by the shares of the others."""
        whole = table.reshape([table.shape[t.index(axis)] if axis in t else 1 for axis in s])
        for place, axis in enumerate(s):
            if axis not in t:
                shape = [1] * len(s)
                shape[place] = -1
                whole = whole * self.margins[axis].shares.reshape(shape)
        return whole

    def _reach_of(self, s: Axes) -> Floats:
        """h² of a set of strength one."""
        found = np.array(self._gains[s] ** 2 * self.rows)
        for axis in s:
            found = np.multiply.outer(found, self.margins[axis].spectrum)
        return found

    def _middle(self, s: Axes, tables: Mapping[Axes, Floats]) -> Floats | None:
        """Coordinates of the departure of three attributes of which only pairs matter, if all are known."""
        pairs = [*itertools.combinations(s, 2)]
        if len(s) != 3 or not all(pair in tables for pair in pairs):
            return None
        parts = [t for t in subsets(s) if t in tables]
        start = self._spread(s, (), tables[()])
        flat = start + sum((self._spread(s, t, tables[t]) for t in parts if t), np.zeros(start.shape))
        part = widest(start, [flat.sum(axis=axis) for axis in (2, 1, 0)]) - flat
        for axis in s:
            part = np.tensordot(part, self.margins[axis].inverse, axes=(0, 1))
        return part

    def _learn(self, s: Axes, values: Floats, middle: Floats | None) -> Floats:
        """Strength, mean and weight of a set from its rotated values; gives its mean table."""
        reach, shift = self._reach_of(s), np.zeros(values.shape)
        if middle is not None:
            seen = np.sqrt(reach / self.rows) * middle
            _, share = min((_strongest((values - share * seen) ** 2, reach)[1], share) for share in _SHARES)
            values, shift = values - share * seen, share * middle
        strength = _VAGUE if len(s) == 1 else _strongest(values**2, reach)[0]
        h = np.sqrt(strength * reach)
        scale = math.sqrt(strength * self.rows)
        self.strengths[s] = strength
        self.means[s] = shift + scale * h * values / (1 + h**2)
        self.weights[s] = scale / np.sqrt(1 + h**2)
        table = self.means[s]
        for axis in s:
            table = np.tensordot(table, self.margins[axis].basis, axes=(0, 1))
        return table


def _strongest(squares: Floats, reach: Floats) -> tuple[float, float]:
    """The strength v of largest likelihood of values of variances 1 + v · reach, and its -2 logarithm."""

    def unlikely(log: float) -> float:
        variances = 1 + math.exp(log) * reach
        return float((np.log(variances) + squares / variances).sum())

    found = scipy.optimize.minimize_scalar(unlikely, bounds=_BOUNDS, method="bounded")
    return math.exp(float(found.x)), float(found.fun)


def _classes(labels: Labels, classes: int) -> Floats:
    """(classes, levels) which levels are in each class."""
    return np.asarray(np.arange(classes)[:, np.newaxis] == unpacked(labels), dtype=float)


def _square(query: Query, grams: Mapping[int, Floats]) -> float:
    """The quadratic form of a query's tensor with one matrix for each of its axes, or the outer of one."""
    weights = seen = tensor_of(query).astype(float)
    for axis in query.axes:
        seen = np.tensordot(seen, grams[axis], axes=(0, 0))
    return float((weights * seen).sum())
