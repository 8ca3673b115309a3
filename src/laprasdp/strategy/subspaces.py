r"""The parts of a query: R^n splits into orthogonal subspaces, one for each set of attributes.

The functions in the subspace of a set are centred on each of its attributes and constant on all others.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from laprasdp.arrays import Floats, Ints
from laprasdp.queries.query import Query
from laprasdp.queries.runs import class_sizes
from laprasdp.strategy.factor import Moment, Root, root_of, strategy_of

Axes = tuple[int, ...]


_ROUNDS = 60  # reweightings for the absolute error


def subspace_variances(
    queries: Sequence[Query], moments: Mapping[int, Moment]
) -> tuple[tuple[Axes, ...], Floats]:
    """
    Variance of each query's part in each subspace, where that subspace is measured with m = 1.

    Returns
    -------
    sets : tuple of s sets of axes
        All subsets of the axes of any query.
    variances : (m, s) array
        The variance of a query is ``variances @ (1 / m_s)``.
    """
    shape = queries[0].domain.shape
    named = {axis for query in queries for axis in query.axes}
    roots = {axis: root_of(shape[axis], strategy_of(shape[axis], moments.get(axis))) for axis in named}
    found = [{axes: float(np.sum(part**2)) for axes, part in parts(q, roots).items()} for q in queries]
    sets = tuple(sorted({axes for each in found for axes in each}, key=lambda axes: (len(axes), axes)))
    return sets, np.array([[each.get(axes, 0.0) for axes in sets] for each in found])


def subspace_weights(
    queries: Sequence[Query],
    moments: Mapping[int, Moment],
    weights: Floats | None = None,
    *,
    absolute: bool = True,
) -> dict[Axes, float]:
    r"""
    Expected weight of each subspace, for `design_marginals`.

    Parameters
    ----------
    queries : sequence of m Query
        Typical queries: predicted ones, or a sample.
    weights : (m,) array, optional
        :math:`\lambda_q`, expected count of each query; one each if absent.
    absolute : bool
        For the least mean absolute error, by reweighting with 1/deviation; else the least mean variance.

    Returns
    -------
    mapping of set of axes to float
        :math:`a_s=\sum_q\lambda_qv_s(q)`; subspaces in which no query has a part are left out.
    """
    sets, variances = subspace_variances(queries, moments)
    given = np.ones(len(queries)) if weights is None else np.asarray(weights, dtype=float)
    variances[variances < 1e-24 * variances.max(axis=1, keepdims=True)] = 0.0
    weigh = given
    for _ in range(_ROUNDS if absolute else 1):
        total = weigh @ variances
        root = np.sqrt(total)
        inverse = np.divide(root.sum(), root, out=np.zeros_like(root), where=root > 0)
        deviation = np.sqrt(variances @ inverse)
        weigh = np.divide(given, deviation, out=np.zeros_like(given), where=deviation > 0)
    return {axes: float(a) for axes, a in zip(sets, total, strict=True) if a > 0}


def parts(query: Query, roots: Mapping[int, Root], sets: Sequence[Axes] | None = None) -> dict[Axes, Floats]:
    r"""
    The query seen by each subspace: :math:`\bigotimes_{i\in s}H_iq\bigotimes_{i\notin s}` mean.

    Parameters
    ----------
    roots : mapping of axis to Root
        One for each axis of a wanted set.
    sets : sequence of sets of axes, optional
        The wanted subsets of the query's axes; all of them if absent.  A part's variance is its squared
        norm over :math:`m_s`.

    Returns
    -------
    mapping of set of axes to array
        One dimension for each axis of the set: the rows that `Root.project` gives.
    """
    axes = query.axes
    sets = subsets(axes) if sets is None else sets
    inside, outside = {}, {}
    weights = tensor_of(query).astype(float)
    for axis, labels, classes in zip(axes, query.steps, weights.shape, strict=True):
        sizes = roots[axis].sizes(labels, classes) if axis in roots else class_sizes(labels, classes)
        outside[axis] = (sizes / sizes.sum())[np.newaxis]
        if axis in roots:
            inside[axis] = roots[axis].project(labels, np.eye(classes))[1].T
    found: dict[Axes, Floats] = {}
    for wanted in sets:
        tensor = weights
        for axis in axes:  # contracting the first axis puts its result last
            tensor = np.tensordot(tensor, inside[axis] if axis in wanted else outside[axis], axes=(0, 1))
        found[wanted] = tensor
    return found


def subsets(axes: Axes) -> list[Axes]:
    """All subsets of some axes, small ones first."""
    return [s for size in range(len(axes) + 1) for s in itertools.combinations(axes, size)]


def tensor_of(query: Query) -> Ints:
    """The weights of a query with exactly one axis for each attribute that it names."""
    return query.weights.reshape(query.weights.shape[: len(query.axes)])
