"""What a policy is built from: everything public about a stream, its table's domain and its budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from laprasdp.arguments import check_arguments, check_options, is_share, is_text, option, or_none
from laprasdp.arrays import Floats
from laprasdp.errors import ConfigError
from laprasdp.pacing.competitive import TYPICAL
from laprasdp.pacing.pacing import Reading
from laprasdp.pacing.split import shares_of
from laprasdp.policy.query_shapes import ARE_SHAPES, QueryShape, are_shapes, kept_shapes, shapes_of
from laprasdp.privacy.accounting import Accounting, accounting_named
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain
from laprasdp.queries.query import Query

_FIRST = ("accounting", "split", "overlap", "reading")


@dataclass(frozen=True, kw_only=True)
class Options:
    """
    How a stream is answered; the ledger keeps each of these, and a session goes on only with the same.

    Attributes
    ----------
    accounting : {"gaussian", "basic"}
        Gaussian DP on cells, or basic composition as in the paper.
    split : {"matrix-heavy", "query-heavy", "reserve-heavy", "equal"}
        How the paper's policies share the budget out.
    overlap : float, optional
        Share of the stream that is expected to be predicted, where logs tell it; primm uses it.
    reading : Reading
        How the paper is read where it is silent.
    release : {"either", "gaussian", "pure"}
        What primm may release on a table of few cells: Gaussian noise again and again, or Laplace noise once,
        with the whole ε; the better of the two by itself.
    shapes : list of str or QueryShape, or mapping of str to float
        Families of queries that the stream is expected to hold, or the share of each; primm uses them.  Kept
        as a tuple of `QueryShape`, by name.

    Raises
    ------
    ConfigError
        One of them makes no sense.
    """

    accounting: str = option("gaussian", ("basic", "gaussian").__contains__, '"basic" or "gaussian"')
    split: str = option("matrix-heavy", is_text, "the name of a split")
    overlap: float | None = option(None, or_none(is_share), "a number from 0 to 1")
    reading: Reading = option(  # noqa: RUF009 (a field)
        Reading(), lambda given: isinstance(given, Reading), "a Reading or None"
    )

    release: str = option(
        "either", ("either", "gaussian", "pure").__contains__, '"either", "gaussian" or "pure"'
    )
    shapes: Iterable[str | QueryShape] | Mapping[str, float] = option((), are_shapes, ARE_SHAPES)

    def __post_init__(self) -> None:
        check_options(self)
        shares_of(self.split)
        object.__setattr__(self, "shapes", shapes_of(self.shapes))

    @property
    def options(self) -> dict[str, Any]:
        """Each option by its name."""
        return {one.name: getattr(self, one.name) for one in fields(Options)}

    @property
    def kept(self) -> dict[str, Any]:
        """
        The options that a ledger keeps.

        One that came after the first ledgers is left out at its default: a ledger from before it goes on.
        """
        defaults = {one.name: one.default for one in fields(Options)}
        kept = {
            name: given for name, given in self.options.items() if name in _FIRST or given != defaults[name]
        }
        return kept | ({"shapes": kept_shapes(self.families)} if self.families else {})

    @property
    def families(self) -> tuple[QueryShape, ...]:
        """`shapes` as a tuple of `QueryShape`."""
        return shapes_of(self.shapes)


@dataclass(frozen=True)
class Setting(Options):
    """
    Everything public that a policy is built from; its options are those of the stream.

    Attributes
    ----------
    domain : Domain
    budget : Budget
    horizon : int or None
        S ≥ 1, the statements that the budget is paced for; None where nobody knows, which primm allows.
    predictions : tuple of Query
        P; distinct, none of them the same on every cell.
    expected : tuple of float
        λ, how often each of `predictions` is expected, in any unit; empty where all are alike.  Only primm
        uses it.
    unit : PrivacyUnit
    """

    domain: Domain
    budget: Budget
    horizon: int | None
    predictions: tuple[Query, ...] = ()
    expected: tuple[float, ...] = field(default=(), kw_only=True)
    unit: PrivacyUnit = field(default_factory=PrivacyUnit, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_arguments(horizon=self.horizon)
        for shape in self.families:
            shape.sets(self.domain)
        predictions = tuple(dict.fromkeys(self.predictions))
        if self.expected and len(self.expected) != len(predictions):
            raise ConfigError("every distinct predicted query, or none, has an expected count")
        object.__setattr__(self, "predictions", predictions)

    @cached_property
    def importance(self) -> Floats:
        """(m,) share of each predicted query among them all."""
        weights = np.array(self.expected or [1.0] * len(self.predictions))
        return np.asarray(weights / weights.sum()) if len(weights) else weights

    @property
    def length(self) -> int:
        """Statements that designs and plans reckon with."""
        return self.horizon or TYPICAL

    @cached_property
    def ledger_unit(self) -> Accounting:
        """What charges are made of."""
        if self.horizon is None and self.accounting == "basic":
            raise ConfigError("basic accounting shares δ out: a horizon has to be declared")
        return accounting_named(self.accounting, self.budget, self.domain, self.length)

    def settings(self) -> dict[str, Any]:
        """All of it as plain data, for the ledger; a predicted query is named by its key."""
        return {
            "domain": [[name, declared] for name, declared in self.domain.settings().items()],
            "unit": self.unit.settings(),
            "budget": asdict(self.budget),
            "horizon": self.horizon,
            "expected": list(self.expected),
            "predictions": [query.key for query in self.predictions],
            **self.kept,
            "reading": asdict(self.reading),
        }
