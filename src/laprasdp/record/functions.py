"""Functions of the cells as JSON, both ways."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

from laprasdp.errors import LedgerError
from laprasdp.queries.distinct import Persons
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups
from laprasdp.queries.query import Query
from laprasdp.record.integers import FormText, read_array, read_labels, write_integers, write_labels

Form = dict[str, Any]
_Wanted = TypeVar("_Wanted")
_SMALL = 1_024  # weights of a query that is kept when it was read


def write_query(query: Query) -> Form:
    """
    A function of the cells: ``classes`` of each attribute's levels, and a weight for each tuple of classes.

    ``weights`` are in C order of ``shape``; its axes are the named attributes, in the order of the domain.
    With ``persons``, persons are counted who have a row there.
    """
    return {
        "classes": {
            name: write_labels(labels) for name, labels in zip(query.names, query.steps, strict=True)
        },
        "shape": list(query.weights.shape),
        "weights": write_integers(query.weights.reshape(-1)),
        **({"persons": True} if isinstance(query, Persons) else {}),
    }


def read_query(form: Form, domain: Domain) -> Query:
    """The same function of the cells, its classes neither merged nor numbered again."""
    axes = tuple(sorted(domain.axis(name) for name in form["classes"]))
    labels = []
    for axis in axes:
        name = domain.names[axis]
        labels.append(read_labels(form["classes"][name], name, domain.shape[axis]))
    weights = read_array(form["weights"]).reshape(shape_of(form))
    if weights.ndim < len(labels) or weights.shape[len(labels) :] != (1,) * (weights.ndim - len(labels)):
        raise LedgerError("weights have an axis for each attribute")
    if any(int(column.max()) >= size for column, size in zip(labels, weights.shape, strict=True)):
        raise LedgerError("a class has no weight")
    weights.setflags(write=False)
    found = Query.over(domain, axes, tuple(labels), weights)
    return Persons.of(found) if typed(form.get("persons", False), bool) else found


@lru_cache(maxsize=64)  # a statement's query stands in its measurement and in its reply
def _read_once(text: FormText, domain: Domain) -> Query:
    return read_query(text.form, domain)


def write_queries(queries: Sequence[Query]) -> Form:
    """
    Queries one by one; or groups of a ``whole`` that is cut ``by`` attributes of so many ``levels``.

    ``places`` are those of the groups in C order of these levels.
    """
    if not isinstance(queries, Groups):
        return {"queries": [write_query(query) for query in queries]}
    return {
        "groups": {
            "whole": write_query(queries.whole),
            "by": [queries.domain.names[axis] for axis in queries.by],
            "levels": list(queries.shape),
            "places": write_integers(queries.places),
        }
    }


def read_queries(form: Form, domain: Domain) -> tuple[Query, ...] | Groups:
    """The queries of `write_queries`."""
    if "groups" not in form:
        return tuple(
            _read_once(FormText(query), domain)
            if math.prod(shape_of(query)) <= _SMALL
            else read_query(query, domain)
            for query in typed(form["queries"], list)
        )
    groups = form["groups"]
    whole = read_query(groups["whole"], domain)
    if whole.canonical().key != whole.key:
        raise LedgerError("a whole is not written as the only query of its meaning")
    by = tuple(domain.axis(typed(name, str)) for name in typed(groups["by"], list))
    found = Groups(whole, by, read_array(groups["places"]))
    if groups["levels"] != list(found.shape) or not len(found):
        raise LedgerError("there are other groups, or none")
    return found


def typed(value: Any, kind: type[_Wanted]) -> _Wanted:
    """The value, which is of this type and of no type that merely counts as it."""
    if type(value) is not kind:
        raise ValueError(f"{value!r} stands where a {kind.__name__} should")
    return value


def shape_of(form: Form) -> list[int]:
    """Lengths of axes, none of which is left to be worked out."""
    shape = typed(form["shape"], list)
    if not all(type(size) is int and size > 0 for size in shape):
        raise ValueError(f"{shape!r} is no shape")
    return shape
