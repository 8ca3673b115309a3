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

No message depends on the private table: schema, domain, statement and public state only.  Ctrl-C is none of
them: it leaves every door as KeyboardInterrupt, whatever a library makes of it (`interruptible`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
    """Answering would pass the budget, or the policy has nothing left for this query."""


class DataError(LaprasError, ValueError):
    """The table is missing, unreadable, or does not match the declared domain."""


class LedgerError(LaprasError, RuntimeError):
    """The ledger cannot record or replay."""


class ConfigError(LaprasError, ValueError):
    """A setting is missing, unknown or contradictory."""


@contextmanager
def interruptible() -> Iterator[None]:
    """
    Ctrl-C leaves the block as KeyboardInterrupt, also where a library has turned it into an error of its own.

    Raises
    ------
    KeyboardInterrupt
        The error that leaves the block came of one, which was not being handled before.
    """
    before = sys.exc_info()[1]
    try:
        yield
    except Exception as error:
        if _interrupted(error, before):
            raise KeyboardInterrupt from None
        raise


def _interrupted(error: BaseException, before: BaseException | None) -> bool:
    seen: list[BaseException] = [] if before is None else [before]
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or one in seen:
            continue
        if isinstance(one, KeyboardInterrupt) or type(one).__name__ == "InterruptException":  # DuckDB's
            return True
        seen.append(one)
        left += [one.__cause__, one.__context__]
    return False
