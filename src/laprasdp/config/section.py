"""A section of the file: which keys it may have, and what kind of value each holds."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from laprasdp.errors import BudgetError, ConfigError, DomainError

_ABSENT: Any = object()
_SPOKEN: dict[Any, str] = {
    str: "text in quotes",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    (int, float): "a number",
    (int, str): "a whole number or text in quotes",
    (int, float, str): "a number or text in quotes",
    (list, dict): "a list of shapes, or shapes with the share of each",
    (list, str): "a list of statements or the name of a file",
}


class Section:
    """
    One section of the file.

    Parameters
    ----------
    where : str
        The file, and the section where it is not the file itself, for messages.
    values : object
        What stands there.
    """

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self.where, self._values = where, values

    def __contains__(self, key: str) -> bool:
        return key in self._values

    @property
    def names(self) -> list[str]:
        """The keys that are there, in order."""
        return list(self._values)

    def only(self, *known: str, what: str = "key") -> None:
        """Refuse every other key."""
        for key in self._values:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                raise ConfigError(f"{self.where}: unknown {what} {key}; {hint}")

    def take(self, key: str, kind: type | tuple[type, ...] = object, default: Any = _ABSENT) -> Any:
        """The value of `key`, which must be of this kind; missing is an error where there is no default."""
        value = self._values.get(key, default)
        if value is _ABSENT:
            raise ConfigError(f"{self.where}: {key} is missing; fill it in")
        if value is not default and (
            not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object))
        ):
            shown = f", not {value!r}" if "://" not in repr(value) else ""  # an address may hold a password
            raise ConfigError(f"{self.where}: {key} must be {_SPOKEN[kind]}{shown}")
        if isinstance(value, str) and "\0" in value:
            raise ConfigError(f"{self.where}: {key} has a NUL in it: leave it out")
        return value

    def section(self, key: str, path: str | None = None) -> Section:
        """The section below this one; empty where it is not there."""
        values = self._values.get(key, {})
        if not isinstance(values, Mapping):
            raise ConfigError(f"{self.where}: {key} is a section: write [{path or key}]")
        return Section(f"{self.where.partition(', [')[0]}, [{path or key}]", values)


def placed(where: str, build: Callable[..., Any], *arguments: Any) -> Any:
    """Build something, and say where in the file it was declared if that is refused."""
    try:
        return build(*arguments)
    except (DomainError, BudgetError, ConfigError) as error:
        raise type(error)(f"{where}: {error}") from None
