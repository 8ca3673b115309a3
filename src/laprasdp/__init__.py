"""Answers a stream of counting queries over a private table under one differential-privacy budget."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laprasdp.answer import Answer, GroupedAnswer
    from laprasdp.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers
    from laprasdp.data.dialect import Dialect
    from laprasdp.domain import Domain
    from laprasdp.errors import (
        BudgetError,
        BudgetExhausted,
        ConfigError,
        DataError,
        DomainError,
        LaprasError,
        LedgerError,
        OtherTable,
        QuerySyntaxError,
        UnknownAnalyst,
        UnsupportedQuery,
    )
    from laprasdp.opening import open_session
    from laprasdp.pacing.pacing import Reading
    from laprasdp.plan import Plan
    from laprasdp.privacy.budget import Budget
    from laprasdp.privacy.noise import ExactNoise, SeededNoise
    from laprasdp.privacy.unit import PrivacyUnit
    from laprasdp.query import Query
    from laprasdp.session import Session
    from laprasdp.windows import Period, WindowedSession, open_windows
    from laprasdp.workload import Workload

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Attribute",
    "Bins",
    "Booleans",
    "Budget",
    "BudgetError",
    "BudgetExhausted",
    "Categories",
    "ConfigError",
    "DataError",
    "Dates",
    "Dialect",
    "Domain",
    "DomainError",
    "ExactNoise",
    "GroupedAnswer",
    "Integers",
    "LaprasError",
    "LedgerError",
    "OtherTable",
    "Period",
    "Plan",
    "PrivacyUnit",
    "Query",
    "QuerySyntaxError",
    "Reading",
    "SeededNoise",
    "Session",
    "UnknownAnalyst",
    "UnsupportedQuery",
    "WindowedSession",
    "Workload",
    "open_session",
    "open_windows",
]

_HOMES = {
    "answer": ("Answer", "GroupedAnswer"),
    "attribute": ("Attribute", "Bins", "Booleans", "Categories", "Dates", "Integers"),
    "data.dialect": ("Dialect",),
    "opening": ("open_session",),
    "pacing.pacing": ("Reading",),
    "plan": ("Plan",),
    "privacy.budget": ("Budget",),
    "privacy.noise": ("ExactNoise", "SeededNoise"),
    "privacy.unit": ("PrivacyUnit",),
    "domain": ("Domain",),
    "query": ("Query",),
    "session": ("Session",),
    "windows": ("Period", "WindowedSession", "open_windows"),
    "workload": ("Workload",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import laprasdp`` and the command start fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "errors")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
