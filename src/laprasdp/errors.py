"""Every error that LAPRAS raises on purpose, in one tree; each message is one line a user can act on.

Each class has a `code`, which stays when messages are reworded, and the HTTP `status` that a service answers
with; docs/errors.md says of each when it comes and what to do.

::

    LaprasError              error              500
    ├── DomainError          domain             400  the declared domain, or a value that lies outside it
    ├── UnsupportedQuery     unsupported-query  422  a statement that cannot be asked; it costs nothing
    │   ├── QuerySyntaxError query-syntax       400  the statement cannot be read as SQL
    │   └── OtherTable       other-table        404  it is about a table that is not the declared one
    ├── BudgetError          budget             400  a budget, price or accounting that makes no sense
    │   └── BudgetExhausted  budget-exhausted   403  the filter or the policy refuses; what is left stays
    │       └── TooImprecise too-imprecise      403  a standard deviation that is wanted cannot be met
    ├── DataError            data               500  a table that cannot be read as declared
    ├── LedgerError          ledger             503  the ledger cannot record or replay
    └── ConfigError          config             500  lapras.toml or the arguments of a session
        └── UnknownAnalyst   unknown-analyst    403  somebody who may not ask

No message depends on the private table: schema, domain, statement and public state only.  Ctrl-C is none of
them: it leaves every door as KeyboardInterrupt, whatever a library makes of it (`interruptible`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar


class LaprasError(Exception):
    """Base of all errors raised on purpose."""

    code: ClassVar[str] = "error"
    """Names the kind of error; it never changes."""
    status: ClassVar[int] = 500
    """What a service answers with, as in RFC 9110."""


class DomainError(LaprasError, ValueError):
    """The declared domain makes no sense, or something lies outside it."""

    code = "domain"
    status = 400


class UnsupportedQuery(LaprasError, ValueError):
    """The statement is outside what may be asked; the message names the construct."""

    code = "unsupported-query"
    status = 422


class QuerySyntaxError(UnsupportedQuery):
    """The statement cannot be parsed; the message carries line and column."""

    code = "query-syntax"
    status = 400


class OtherTable(UnsupportedQuery):
    """The statement names a table that is not the declared one."""

    code = "other-table"
    status = 404


class BudgetError(LaprasError, ValueError):
    """A budget or a price is not a sensible number."""

    code = "budget"
    status = 400


class BudgetExhausted(BudgetError):
    """
    Answering would pass the budget, or the policy has nothing left for this query.

    Attributes
    ----------
    released : tuple of laprasdp.stream.answer.Released
        What left the budget all the same before the statement was refused, and why.
    """

    released: tuple[Any, ...] = ()

    code = "budget-exhausted"
    status = 403


class TooImprecise(BudgetExhausted):
    """What may be measured is not enough for the standard deviation that is wanted; nothing is charged."""

    code = "too-imprecise"
    status = 403


class DataError(LaprasError, ValueError):
    """The table is missing, unreadable, or does not match the declared domain."""

    code = "data"
    status = 500


class LedgerError(LaprasError, RuntimeError):
    """The ledger cannot record or replay."""

    code = "ledger"
    status = 503


class ConfigError(LaprasError, ValueError):
    """A setting is missing, unknown or contradictory."""

    code = "config"
    status = 500


class UnknownAnalyst(ConfigError):
    """There are caps, and whoever asks has none; or the analyst's name is not valid."""

    code = "unknown-analyst"
    status = 403


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
