"""What each argument of a session may be: one table for every function that takes such arguments.

A value of another kind is refused by one line that names the argument, before anything is opened.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from laprasdp.errors import ConfigError
from laprasdp.limits import MAX_HORIZON
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.unit import PrivacyUnit
from laprasdp.queries.domain import Domain

_MAY_BE = "may be"
_Given = ParamSpec("_Given")
_Opened = TypeVar("_Opened")


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
        _check(name, value, *_ARGUMENTS[name])


def option(default: Any, fits: Callable[[Any], bool], what: str, **more: Any) -> Any:
    """
    A field of a declaration, which says itself what it may be: a new one needs no line anywhere else.

    Parameters
    ----------
    fits : callable
        Whether a value may be given.
    what : str
        What it should be, for a message.
    **more
        As for `dataclasses.field`.
    """
    return field(default=default, metadata={_MAY_BE: (fits, what)}, **more)


def check_options(declared: Any) -> None:
    """Whether each `option` of a dataclass is what it may be; raises as `check_arguments`."""
    for one in fields(declared):
        if _MAY_BE in one.metadata:
            _check(one.name, getattr(declared, one.name), *one.metadata[_MAY_BE])


def checked(**kinds: str) -> Callable[[Callable[_Given, _Opened]], Callable[_Given, _Opened]]:
    """
    Make a function check its arguments by `check_arguments` before it does anything.

    Parameters
    ----------
    **kinds
        An argument's name in the table below, where it is another than in the function.  Arguments that the
        table does not have are not checked here.
    """

    def decorate(function: Callable[_Given, _Opened]) -> Callable[_Given, _Opened]:
        signature = inspect.signature(function)
        rows = {name: kinds.get(name, name) for name in signature.parameters}

        @wraps(function)
        def call(*args: _Given.args, **kwargs: _Given.kwargs) -> _Opened:
            given = signature.bind_partial(*args, **kwargs).arguments
            check_arguments(**{rows[name]: given[name] for name in given if rows[name] in _ARGUMENTS})
            return function(*args, **kwargs)

        return call

    return decorate


def _check(name: str, value: Any, fits: Callable[[Any], bool], what: str) -> None:
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


def is_whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def is_text(value: Any) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()


def is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _counts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(is_number(one) and one > 0 for one in value)


def _caps(value: Any) -> bool:
    return isinstance(value, Mapping) and all(is_text(name) and is_number(cap) for name, cap in value.items())


def is_share(value: Any) -> bool:
    """Whether it is a number from 0 to 1."""
    return is_number(value) and 0 <= value <= 1


def _has(*methods: str) -> Callable[[Any], bool]:
    return lambda value: all(callable(getattr(value, name, None)) for name in methods)


def or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _kept(*methods: str) -> Callable[[Any], bool]:
    """A path or URL, which is read where it is opened, or what has these methods."""
    return or_none(lambda value: isinstance(value, str | os.PathLike) or _has(*methods)(value))


IS_HORIZON = (
    or_none(lambda value: is_whole(value, MAX_HORIZON)),
    f"a whole number from 1 to {MAX_HORIZON:,}, or None",
)
_ARGUMENTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "source": (lambda value: is_text(value) or not isinstance(value, str), "a table or the path of one"),
    "domain": (lambda value: isinstance(value, Domain), "a Domain"),
    "budget": (lambda value: isinstance(value, Budget), "a Budget"),
    "horizon": IS_HORIZON,
    "expected": (_counts, "a list of positive numbers"),
    "unit": (or_none(lambda value: isinstance(value, PrivacyUnit)), "a PrivacyUnit or None"),
    "table": (or_none(is_text), "the name of a table, or None"),
    "name": (or_none(is_text), "a name, or None"),
    "public": (lambda value: isinstance(value, bool), "True or False"),
    "noise": (or_none(_has("gaussian", "laplace")), "a source of noise, or None"),
    "ledger": (_kept("open", "transaction", "since"), "a ledger, a path, a URL, or None"),
    "shelf": (_kept("ledger", "together", "settings"), "a shelf of ledgers, a path, a URL, or None"),
    "caps": (or_none(_caps), "a mapping of analysts to numbers, or None"),
    "lookups": (
        or_none(lambda value: isinstance(value, Mapping) and all(map(is_text, value))),
        "a mapping of names to lookups, or None",
    ),
    "derived": (
        or_none(
            lambda value: (
                isinstance(value, Mapping)
                and all(is_text(name) and is_text(text) for name, text in value.items())
            )
        ),
        "a mapping of names to SQL texts, or None",
    ),
    "clock": (callable, "a function without arguments that gives the time"),
    "attribute": (is_text, "the name of a date attribute"),
    "periods": (
        lambda value: is_text(value) or is_whole(value, 10**6) or is_list(value),
        "a step in days or by name, or a list of Period",
    ),
    "statements": (is_list, "a list of statements or queries"),
    "period": (is_text, "the first date of a period"),
}
