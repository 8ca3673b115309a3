"""Weights of a mixture, learned by likelihood: which template comes, and which of its statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from laprasdp.arrays import Floats, Ints
from laprasdp.predict.log import Log
from laprasdp.predict.model import TINY, Spread
from laprasdp.predict.template import Key

PRIOR = 1.0  # lines that speak for all components alike before any is seen
SHARED = 5.0  # lines for which a template leans on the weights of all templates
ROUNDS = 300


class Templates:
    """The template of each statement of a log, as a number."""

    def __init__(self, statements: Sequence[Key]) -> None:
        self._numbers: dict[str, int] = {}
        self.of = np.array([self._number(key) for key in statements], dtype=np.int64)

    def _number(self, key: Key) -> int:
        return self._numbers.setdefault(key.shape, len(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    def of_new(self, spread: Spread) -> Ints:
        """The templates of the statements that the log does not hold."""
        return np.array([self._numbers[key.shape] for key in spread.new], dtype=np.int64)

    def totals(self, spread: Spread) -> Floats:
        """The sum of a spread over each template."""
        totals = np.bincount(self.of, spread.known, minlength=len(self))
        if spread.new:
            totals += np.bincount(self.of_new(spread), list(spread.new.values()), minlength=len(self))
        return np.asarray(totals, dtype=float)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """
    Statements that came after what the components were fitted on, and what these gave them.

    Attributes
    ----------
    lines : (m,) array
        How often each came.
    templates : (m,) int array
    outer : (m, components) array
        Share of its template.
    inner : (m, components) array
        Share of the statement inside its template; 0 for one that no component knows of.
    covered, seen : (m,) bool arrays
        A component knew of the statement; the log held it.
    """

    lines: Floats
    templates: Ints
    outer: Floats
    inner: Floats
    covered: npt.NDArray[np.bool_]
    seen: npt.NDArray[np.bool_]


def held_out(shares: Sequence[Spread], before: Log, after: Log, templates: Templates) -> HeldOut:
    """What the components' shares, fitted on `before`, gave to the lines of `after`."""
    ids, lines = np.unique(after.ids, return_counts=True)
    whole, outer = np.zeros((len(ids), len(shares))), np.zeros((len(ids), len(shares)))
    kinds = templates.of[ids]
    for column, share in enumerate(shares):
        whole[:, column] = share.known[ids]
        if share.new:
            whole[:, column] += [share.new.get(after.statements[n], 0.0) for n in ids.tolist()]
        outer[:, column] = templates.totals(share)[kinds]
    inner = whole / np.maximum(outer, TINY)
    seen = np.isin(ids, before.ids)
    return HeldOut(lines.astype(float), kinds, outer, inner, whole.sum(axis=1) > 0, seen)


class Blend:
    """
    A mixture in two steps: a template, and a statement of that template, each with weights of its own.

    Parameters
    ----------
    cases : sequence of HeldOut
    components : int
    templates : Templates
    only : int, optional
        Without cases: the one component that counts; otherwise all count alike.

    Notes
    -----
    Weights maximise the likelihood of the covered lines, by expectation–maximisation.  Those of one template
    lean on those of all templates with a Dirichlet prior of `SHARED` lines.
    """

    def __init__(
        self, cases: Sequence[HeldOut], components: int, templates: Templates, *, only: int | None = None
    ) -> None:
        even = np.full(components, 1 / components) if only is None else np.eye(components)[only]
        self._templates = templates
        self.outer, self._shared = even, even
        self._own: dict[int, Floats] = {}
        if not cases:
            return
        covered = np.concatenate([case.covered for case in cases])
        kinds = np.concatenate([case.templates for case in cases])[covered]
        inner = np.concatenate([case.inner for case in cases])[covered]
        outer = np.concatenate([case.outer for case in cases])[covered]
        lines = np.concatenate([case.lines for case in cases])[covered]
        self.outer = _maximised(outer, lines, even, PRIOR)
        self._shared = _maximised(inner, lines, even, PRIOR)
        for kind in np.unique(kinds).tolist():
            here = kinds == kind
            self._own[kind] = _maximised(inner[here], lines[here], self._shared, SHARED)

    @property
    def inner(self) -> Floats:
        """(templates, components): the weights inside each template."""
        weights = np.tile(self._shared, (len(self._templates), 1))
        for kind, own in self._own.items():
            weights[kind] = own
        return weights

    def mixed(self, shares: Sequence[Spread]) -> Spread:
        """The components' shares, blended; those with nothing to say about a template do not count there."""
        totals = np.array([self._templates.totals(share) for share in shares])  # (components, templates)
        there = totals > 0
        outer = self.outer * there.any(axis=1)
        template = outer @ totals / max(float(outer.sum()), TINY)
        inner = self.inner.T * there
        whole = totals * inner.sum(axis=0)
        inner = np.divide(inner * template, whole, out=np.zeros_like(inner), where=whole > 0)
        mixed = Spread(np.zeros_like(shares[0].known))
        for share, factor in zip(shares, inner, strict=True):
            new = factor[self._templates.of_new(share)] if share.new else np.zeros(0)
            mixed = mixed.plus(
                Spread(
                    share.known * factor[self._templates.of],
                    {key: value * f for (key, value), f in zip(share.new.items(), new.tolist(), strict=True)},
                )
            )
        return mixed

    def nats(self, case: HeldOut) -> float:
        """Log-likelihood of the covered lines of a case."""
        inner = (case.inner * self.inner[case.templates]).sum(axis=1)
        whole = (case.outer @ self.outer) * inner
        return float((case.lines * np.log(np.maximum(whole, TINY)))[case.covered].sum())


def _maximised(shares: Floats, lines: Floats, prior: Floats, trust: float) -> Floats:
    """The mixture weights under which rows of shares are likeliest, with a prior worth `trust` lines."""
    there = shares.sum(axis=1) > 0
    shares, lines = shares[there], lines[there]
    weights = prior
    for _ in range(ROUNDS):
        parts = shares * weights
        counts = lines / np.maximum(parts.sum(axis=1), TINY) @ parts + trust * prior
        updated: Floats = counts / counts.sum()
        if np.abs(updated - weights).max() < 1e-5:
            return updated
        weights = updated
    return weights
