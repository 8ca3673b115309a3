"""Answers a stream of counting queries over a private table under one differential-privacy budget."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laprasdp.client import RemoteSession, connect
    from laprasdp.data.dialect import Dialect
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
        TooImprecise,
        UnknownAnalyst,
        UnsupportedQuery,
    )
    from laprasdp.pacing.pacing import Reading
    from laprasdp.periods import Period, WindowedSession, open_windows
    from laprasdp.policy.stream import Stream
    from laprasdp.privacy.budget import Budget
    from laprasdp.privacy.noise import ExactNoise, SeededNoise
    from laprasdp.privacy.unit import PrivacyUnit
    from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers, Reals
    from laprasdp.queries.domain import Domain
    from laprasdp.queries.prediction import Prediction
    from laprasdp.queries.query import Query
    from laprasdp.queries.workload import Workload
    from laprasdp.sql.lookup import Lookup
    from laprasdp.stream.answer import Answer, GroupedAnswer
    from laprasdp.stream.asking import Account
    from laprasdp.stream.opening import open_session
    from laprasdp.stream.plan import Plan
    from laprasdp.stream.price import Price
    from laprasdp.stream.resultset import Figure, ResultRow, ResultSet
    from laprasdp.stream.session import Session

__version__ = "0.1.0"

__all__ = [
    "Account",
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
    "Figure",
    "GroupedAnswer",
    "Integers",
    "LaprasError",
    "LedgerError",
    "Lookup",
    "OtherTable",
    "Period",
    "Plan",
    "Prediction",
    "Price",
    "PrivacyUnit",
    "Query",
    "QuerySyntaxError",
    "Reading",
    "Reals",
    "RemoteSession",
    "ResultRow",
    "ResultSet",
    "SeededNoise",
    "Session",
    "Stream",
    "TooImprecise",
    "UnknownAnalyst",
    "UnsupportedQuery",
    "WindowedSession",
    "Workload",
    "connect",
    "open_session",
    "open_windows",
]

_HOMES = {
    "stream.answer": ("Answer", "GroupedAnswer"),
    "queries.attribute": ("Attribute", "Bins", "Booleans", "Categories", "Dates", "Integers", "Reals"),
    "client": ("RemoteSession", "connect"),
    "data.dialect": ("Dialect",),
    "stream.opening": ("open_session",),
    "pacing.pacing": ("Reading",),
    "stream.asking": ("Account",),
    "stream.resultset": ("Figure", "ResultRow", "ResultSet"),
    "sql.lookup": ("Lookup",),
    "stream.plan": ("Plan",),
    "stream.price": ("Price",),
    "policy.stream": ("Stream",),
    "privacy.budget": ("Budget",),
    "privacy.noise": ("ExactNoise", "SeededNoise"),
    "privacy.unit": ("PrivacyUnit",),
    "queries.domain": ("Domain",),
    "queries.prediction": ("Prediction",),
    "queries.query": ("Query",),
    "stream.session": ("Session",),
    "periods": ("Period", "WindowedSession", "open_windows"),
    "queries.workload": ("Workload",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import laprasdp`` and the command start fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "errors")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
