"""What is drawn later of a release that was charged whole: nodes of its long attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from laprasdp.arrays import Floats
from laprasdp.errors import DomainError
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Read
from laprasdp.queries.query import Query
from laprasdp.strategy.kronecker import Marginals, Nodes
from laprasdp.strategy.measurement import Measurement
from laprasdp.strategy.subspaces import Axes

DrawnPart = tuple[Axes, Nodes]
"""A set of attributes, and a node of each long one."""


@dataclass(frozen=True)
class Drawn(Measurement):
    """
    Rows of a `Marginals` release whose noise is drawn only now, and that cost nothing more.

    Attributes
    ----------
    domain : Domain
    parts : tuple of (set of axes, nodes)
        Each of them once, those of a set together.
    whole : Marginals or None
        The release that was charged; None where only its ledger tells, until `of` finds it.

    Notes
    -----
    **Privacy.**  Assumes that `whole` was charged before, and that none of `parts` was drawn before
    (`laprasdp.ledger.once.Once` sees to both).  Guarantees then that all that was drawn is a part of one
    release of `whole`: docs/proofs/lines.md.
    """

    domain: Domain
    parts: tuple[DrawnPart, ...]
    whole: Marginals | None = field(default=None, compare=False)

    @classmethod
    def of(cls, whole: Marginals, parts: Sequence[DrawnPart]) -> Drawn:
        """
        Parts of a release.

        Raises
        ------
        DomainError
            It has no such part, or one is given twice.
        """
        for axes, nodes in parts:
            if axes not in whole.precisions or not whole.later(axes):
                raise DomainError("a part is none of the release that was charged")
            if len(nodes) != sum(axis in whole.long for axis in axes):
                raise DomainError("a part has a node for each long attribute")
            whole.matrices(axes, nodes)
        if not parts or len(set(parts)) < len(parts):
            raise DomainError("each part is drawn once")
        return cls(whole.domain, tuple(parts), whole, bits=whole.bits)

    @property
    def draws(self) -> int:
        return sum(math.prod(self._whole.shape(*part)) for part in self.parts)

    def exact(self, read: Read) -> list[int]:
        return [value for axes, nodes in self.parts for value in self._whole.answers(axes, nodes, read(axes))]

    def amounts(self, max_rows: int = 1) -> Query:
        """Nothing: it was charged with the release that it is a part of."""
        return Query.everywhere(self.domain, 0)

    def split(self, values: Floats) -> dict[DrawnPart, Floats]:
        """Values of the release by part."""
        found, start = {}, 0
        for part in self.parts:
            shape = self._whole.shape(*part)
            end = start + math.prod(shape)
            found[part], start = values[start:end].reshape(shape), end
        return found

    @property
    def _whole(self) -> Marginals:
        if self.whole is None:
            raise DomainError("nothing was charged that these are parts of")
        return self.whole
