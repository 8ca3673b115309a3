"""Arguments: what each one of a session may be, said once for every door that takes it.

A value of another kind is refused by one line that names the argument, before anything is opened.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from laprasdp.errors import ConfigError
from laprasdp.limits import MAX_HORIZON
from laprasdp.pacing.pacing import Reading
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain


def check_arguments(**given: Any) -> None:
    """
    Whether each argument is what one of its name may be.

    Parameters
    ----------
    **given
        Any of the arguments of `open_session`, `open_windows` and the methods of sessions.

    Raises
    ------
    ConfigError
        One is not; the message names it, and says what it should be.
    """
    for name, value in given.items():
        fits, what = _ARGUMENTS[name]
        if not fits(value):
            raise ConfigError(f"{name} must be {what}, not {_shown(value)}")


def is_number(value: Any) -> bool:
    """Whether it is a finite int or float; a bool is neither."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _shown(value: Any) -> str:
    """A value in one line, however long it is."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer of too many digits
        text = f"a number of {value.bit_length():,} bits"
    return text if len(text) <= 60 else f"{text[:59]}…"


def _whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()


def _list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _counts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(is_number(one) and one > 0 for one in value)


def _caps(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_text(name) and is_number(cap) for name, cap in value.items())


def _has(*methods: str) -> Callable[[Any], bool]:
    return lambda value: all(callable(getattr(value, name, None)) for name in methods)


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _kept(*methods: str) -> Callable[[Any], bool]:
    """A path or URL, which is read where it is opened, or what has these methods."""
    return _or_none(lambda value: isinstance(value, str | os.PathLike) or _has(*methods)(value))


_ARGUMENTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "source": (lambda value: _text(value) or not isinstance(value, str), "a table or the path of one"),
    "domain": (lambda value: isinstance(value, Domain), "a Domain"),
    "budget": (lambda value: isinstance(value, Budget), "a Budget"),
    "horizon": (
        _or_none(lambda value: _whole(value, MAX_HORIZON)),
        f"a whole number from 1 to {MAX_HORIZON:,}, or None",
    ),
    "predictions": (_list, "a list of statements or queries"),
    "policy": (_text, "the name of a policy"),
    "accounting": (lambda value: value in ("basic", "gaussian"), '"basic" or "gaussian"'),
    "split": (_text, "the name of a split"),
    "overlap": (
        _or_none(lambda value: is_number(value) and 0 <= value <= 1),
        "a number from 0 to 1",
    ),
    "expected": (_counts, "a list of positive numbers"),
    "reading": (_or_none(lambda value: isinstance(value, Reading)), "a Reading or None"),
    "unit": (_or_none(lambda value: isinstance(value, PrivacyUnit)), "a PrivacyUnit or None"),
    "table": (_or_none(_text), "the name of a table, or None"),
    "name": (_or_none(_text), "a name, or None"),
    "public": (lambda value: isinstance(value, bool), "True or False"),
    "noise": (_or_none(_has("gaussian", "laplace")), "a source of noise, or None"),
    "ledger": (_kept("open", "transaction", "since"), "a ledger, a path, a URL, or None"),
    "shelf": (_kept("ledger", "together", "settings"), "a shelf of ledgers, a path, a URL, or None"),
    "caps": (_or_none(_caps), "a mapping of analysts to numbers, or None"),
    "lookups": (
        _or_none(lambda value: isinstance(value, Mapping) and all(map(_text, value))),
        "a mapping of names to lookups, or None",
    ),
    "clock": (callable, "a function without arguments that gives the time"),
    "attribute": (_text, "the name of a date attribute"),
    "periods": (
        lambda value: _text(value) or _whole(value, 10**6) or _list(value),
        "a step in days or by name, or a list of Period",
    ),
    "statements": (_list, "a list of statements or queries"),
    "period": (_text, "the first date of a period"),
}
