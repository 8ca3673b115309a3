"""The domain as `lapras.toml` declares it: one section an attribute."""

from __future__ import annotations

import json
from collections.abc import Callable

from laprasdp.config.section import Section, placed
from laprasdp.errors import ConfigError
from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers, Reals
from laprasdp.queries.domain import Domain


def read_domain(declared: Section) -> Domain:
    """
    The domain from the section that holds its attributes.

    Raises
    ------
    ConfigError, DomainError
        The message names file and attribute.
    """
    if not declared.names:
        raise ConfigError(f"{declared.where}: no attribute is declared; each is a section like [domain.age]")
    attributes = {
        name: _attribute(declared.section(name, f"domain.{toml_key(name)}")) for name in declared.names
    }
    domain: Domain = placed(declared.where, Domain, attributes)
    return domain


def toml_key(name: str) -> str:
    """An attribute's name as a TOML key."""
    bare = name.isascii() and name.replace("-", "_").replace("_", "a").isalnum()
    return name if bare else json.dumps(name, ensure_ascii=False)


def _attribute(section: Section) -> Attribute:
    kind = section.take("type", str)
    if kind not in _KINDS:
        raise ConfigError(f"{section.where}: no type {kind!r}; there are {', '.join(_KINDS)}")
    keys, build = _KINDS[kind]
    section.only("type", *keys, "nullable")
    nullable = section.take("nullable", bool, False)
    attribute: Attribute = placed(section.where, build(section), nullable)
    return attribute


def _integers(section: Section) -> Callable[[bool], Attribute]:
    low, high = section.take("min"), section.take("max")
    return lambda nullable: Integers(low, high, nullable=nullable)


def _bins(section: Section) -> Callable[[bool], Attribute]:
    whole = section.take("whole", bool, False)
    keys = ("start", "stop", "width")
    edges = section.take("edges", list, None)
    even = [section.take(key, (int, float), None) for key in keys]
    if edges is not None and even != [None] * 3:
        raise ConfigError(f"{section.where}: give edges, or start, stop and width, not both")
    if edges is None:
        missing = [key for key, value in zip(keys, even, strict=True) if value is None]
        if len(missing) == 3:
            raise ConfigError(f"{section.where}: edges are missing; fill them in, or start, stop and width")
        if missing:
            raise ConfigError(f"{section.where}: {missing[0]} is missing; fill it in")
    named: dict[str, float] = {} if edges is not None else dict(zip(keys, even, strict=True))
    return lambda nullable: Bins(edges or (), whole=whole, nullable=nullable, **named)


def _reals(section: Section) -> Callable[[bool], Attribute]:
    lower, upper, step = (section.take(key, (int, float)) for key in ("lower", "upper", "step"))
    return lambda nullable: Reals(lower, upper, step, nullable=nullable)


def _categories(section: Section) -> Callable[[bool], Attribute]:
    values, other = section.take("values", list), section.take("other", bool, False)
    return lambda nullable: Categories(values, other, nullable=nullable)


def _dates(section: Section) -> Callable[[bool], Attribute]:
    first, last, step = section.take("first"), section.take("last"), section.take("step", (int, str), 1)
    return lambda nullable: Dates(first, last, step, nullable=nullable)


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Section], Callable[[bool], Attribute]]]] = {
    "integers": (("min", "max"), _integers),
    "bins": (("edges", "start", "stop", "width", "whole"), _bins),
    "categories": (("values", "other"), _categories),
    "dates": (("first", "last", "step"), _dates),
    "reals": (("lower", "upper", "step"), _reals),
    "booleans": ((), lambda section: lambda nullable: Booleans(nullable=nullable)),
}
"""Type to its keys, and to what reads them."""
