"""The declared domain: named attributes, and the cells that are their product."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from laprasdp.errors import DomainError
from laprasdp.queries.attribute import Attribute


class Domain:
    """
    Named attributes, in order.  The domain is declared, never read from the data.

    Parameters
    ----------
    attributes : mapping or pairs of name and Attribute, optional
    **named : Attribute
        Attributes whose names are Python identifiers.

    Raises
    ------
    DomainError
        No attribute, a name given twice (case does not count), or a value that is no attribute.

    Examples
    --------
    >>> from laprasdp.queries.attribute import Categories, Integers
    >>> Domain(age=Integers(17, 90), sex=Categories(["Female", "Male"])).size
    148
    """

    def __init__(
        self,
        attributes: Mapping[str, Attribute] | Iterable[tuple[str, Attribute]] = (),
        /,
        **named: Attribute,
    ) -> None:
        try:
            given = attributes.items() if isinstance(attributes, Mapping) else attributes
            pairs = [*((name, attribute) for name, attribute in given), *named.items()]
        except (TypeError, ValueError):
            raise DomainError(
                f"attributes must be pairs of a name and an attribute, not {attributes!r}"
            ) from None
        if not pairs:
            raise DomainError("the domain has no attribute")
        folded: dict[str, str] = {}
        for name, attribute in pairs:
            if not isinstance(name, str) or not name:
                raise DomainError(f"attribute name {name!r} is not a text of at least one character")
            if not isinstance(attribute, Attribute):
                raise DomainError(f"{name} is declared as {attribute!r}, which is no attribute")
            if name.casefold() in folded:
                earlier = folded[name.casefold()]
                how = "twice" if earlier == name else f"beside {earlier}, which differs in case only"
                raise DomainError(f"attribute {name} is declared {how}")
            folded[name.casefold()] = name
        self._attributes: dict[str, Attribute] = dict(pairs)
        self.names: tuple[str, ...] = tuple(self._attributes)
        self.shape: tuple[int, ...] = tuple(a.size for a in self._attributes.values())
        self._folded = folded

    @property
    def size(self) -> int:
        """Number of cells, exact however large."""
        return math.prod(self.shape)

    def __getitem__(self, name: str) -> Attribute:
        try:
            return self._attributes[name]
        except KeyError:
            raise DomainError(f"no attribute {name}; declared: {', '.join(self.names)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def axis(self, name: str) -> int:
        """Position of attribute `name`."""
        self[name]
        return self.names.index(name)

    def find(self, name: str, *, exact: bool = False) -> str | None:
        """The declared name that an SQL identifier means; unquoted identifiers fold case."""
        if exact:
            return name if name in self._attributes else None
        return self._folded.get(name.casefold())

    def settings(self) -> dict[str, dict[str, Any]]:
        """The declaration as plain data, as `lapras.toml` spells it."""
        return {name: attribute.settings() for name, attribute in self._attributes.items()}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the declaration; nothing of the data goes into it."""
        text = json.dumps(list(self.settings().items()), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and list(self._attributes.items()) == list(other._attributes.items())

    def __hash__(self) -> int:
        return hash((self.names, self.shape))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={attribute!r}" for name, attribute in self._attributes.items())
        return f"Domain({inner})"
