"""Every error that LAPRAS raises on purpose, in one tree; each message is one line a user can act on.

::

    LaprasError
    ├── DomainError          the declared domain, or a value that lies outside it
    ├── UnsupportedQuery     a statement that cannot be asked; it costs nothing
    │   ├── QuerySyntaxError the statement cannot be read as SQL
    │   └── OtherTable       the statement is about a table that is not the declared one
    ├── BudgetError          a budget, a price or an accounting setting that makes no sense
    │   └── BudgetExhausted  the filter or the policy refuses; what is left stays
    ├── DataError            a table that cannot be read as declared
    ├── LedgerError          the ledger cannot record or replay
    └── ConfigError          lapras.toml or the arguments of a session

No message depends on the private table: schema, domain, statement and public state only.
"""

from typing import Any


class LaprasError(Exception):
    """Base of all errors raised on purpose."""


class DomainError(LaprasError, ValueError):
    """The declared domain makes no sense, or something lies outside it."""


class UnsupportedQuery(LaprasError, ValueError):
    """The statement is outside what may be asked; the message names the construct."""


class QuerySyntaxError(UnsupportedQuery):
    """The statement cannot be parsed; the message carries line and column."""


class OtherTable(UnsupportedQuery):
    """The statement names a table that is not the declared one."""


class BudgetError(LaprasError, ValueError):
    """A budget or a price is not a sensible number."""


class BudgetExhausted(BudgetError):
    """
    Answering would pass the budget, or the policy has nothing left for this query.

    Attributes
    ----------
    released : tuple of laprasdp.answer.Released
        What left the budget all the same before the statement was refused, and why.
    """

    released: tuple[Any, ...] = ()


class DataError(LaprasError, ValueError):
    """The table is missing, unreadable, or does not match the declared domain."""


class LedgerError(LaprasError, RuntimeError):
    """The ledger cannot record or replay."""


class ConfigError(LaprasError, ValueError):
    """A setting is missing, unknown or contradictory."""
