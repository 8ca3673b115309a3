"""Every entry as JSON, both ways: what a third party needs to replay a ledger.

An entry is one line of JSON with sorted keys, no spaces and ASCII only: ``position``, ``at`` (ISO 8601, UTC),
``analyst``, ``statement``, ``kind``, and what that kind holds.  Integers stand as `integers` says; floats as
the shortest decimal that gives the same double.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from laprasdp.domain import Domain
from laprasdp.errors import LaprasError, LedgerError
from laprasdp.ledger.estimate import Estimate
from laprasdp.ledger.integers import read_array, read_integers, write_integer, write_integers
from laprasdp.ledger.ledger import Entry, Kept, Raise, Refusal, Release, Reply, Stamp
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import BasicCharge, CellCharge, Charge
from laprasdp.query import Query
from laprasdp.strategy.clipped import Clipped
from laprasdp.strategy.kronecker import Marginals
from laprasdp.strategy.measurement import Measurement, Rows

FORMAT = 1
"""Version of this form; a reader refuses a newer one."""

Form = dict[str, Any]

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(form: Any) -> str:
    """JSON text that is the same for equal data."""
    return _JSON.encode(form)


def write_entry(kept: Kept) -> str:
    """An entry as its line of JSON."""
    stamp, entry = kept.stamp, kept.entry
    return canonical(
        {
            "position": kept.position,
            "at": stamp.at.astimezone(UTC).isoformat(),
            "analyst": stamp.analyst,
            "statement": stamp.statement,
            "kind": kind_of(entry),
            **_WRITE[type(entry)](entry),
        }
    )


def read_entry(text: str, domain: Domain) -> Kept:
    """
    An entry from its line of JSON.

    Raises
    ------
    LedgerError
        The text is no entry over this domain.
    """
    try:
        form = json.loads(text)
        stamp = Stamp(datetime.fromisoformat(form["at"]), form["analyst"], form["statement"])
        return Kept(int(form["position"]), stamp, _READ[form["kind"]](form, domain))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, LaprasError) as error:
        raise LedgerError(f"the text is no entry of a ledger: {type(error).__name__}: {error}") from None


def kind_of(entry: Entry) -> str:
    """The name of an entry's kind."""
    return type(entry).__name__.lower()


def write_query(query: Query) -> Form:
    """
    A function of the cells: ``classes`` of each attribute's levels, and a weight for each tuple of classes.

    ``weights`` are in C order of ``shape``; its axes are the named attributes, in the order of the domain.
    """
    return {
        "classes": {
            name: write_integers(labels) for name, labels in zip(query.names, query.labels, strict=True)
        },
        "shape": list(query.weights.shape),
        "weights": write_integers(query.weights.reshape(-1)),
    }


def read_query(form: Form, domain: Domain) -> Query:
    """The same function of the cells, its classes neither merged nor numbered again."""
    axes = tuple(sorted(domain.axis(name) for name in form["classes"]))
    labels = []
    for axis in axes:
        column = read_array(form["classes"][domain.names[axis]])
        if column.shape != (domain.shape[axis],) or column.min() < 0:
            raise LedgerError(f"{domain.names[axis]} has {domain.shape[axis]} levels")
        labels.append(column.astype(np.uint8 if column.max() < 256 else np.uint32))
    weights = read_array(form["weights"]).reshape(form["shape"])
    if any(int(column.max()) >= size for column, size in zip(labels, weights.shape, strict=True)):
        raise LedgerError("a class has no weight")
    for array in (*labels, weights):
        array.setflags(write=False)
    return Query.over(domain, axes, tuple(labels), weights)


def write_measurement(measurement: Measurement) -> Form:
    """A strategy on its grid: bits, law and scale of the noise, and its rows or its marginals."""
    form: Form = {"bits": measurement.bits, "law": measurement.law, "scale": write_integer(measurement.scale)}
    if isinstance(measurement, Rows):
        queries = [write_query(query) for query in measurement.queries]
        if isinstance(measurement.matrix, int):
            return {**form, "queries": queries, "multiple": write_integer(measurement.matrix)}
        if isinstance(measurement, Clipped):
            form["limit"] = write_integer(measurement.limit)
        return {**form, "queries": queries, "matrix": _write_matrix(measurement.matrix)}
    assert isinstance(measurement, Marginals)
    names = measurement.domain.names
    return {
        **form,
        "sets": [[names[axis] for axis in axes] for axes in measurement.sets],
        "multipliers": write_integers(measurement.multipliers),
        "factors": {names[axis]: _write_matrix(factor) for axis, factor in measurement.factors.items()},
    }


def read_measurement(form: Form, domain: Domain) -> Measurement:
    """The measurement of `write_measurement`."""
    noise: Any = {"bits": form["bits"], "law": form["law"], "scale": int(form["scale"])}
    if "sets" in form:
        factors = {
            domain.axis(name): np.array(_read_matrix(factor), dtype=np.int64)
            for name, factor in form["factors"].items()
        }
        sets = tuple(tuple(domain.axis(name) for name in names) for names in form["sets"])
        return Marginals(domain, sets, tuple(read_integers(form["multipliers"])), factors, **noise)
    queries = tuple(read_query(query, domain) for query in form["queries"])
    if "multiple" in form:
        return Rows(queries, int(form["multiple"]), **noise)
    matrix = np.array(_read_matrix(form["matrix"]), dtype=object)
    if "limit" in form:
        return Clipped(queries, matrix, limit=int(form["limit"]), **noise)
    return Rows(queries, matrix, **noise)


def units_of(charge: Charge) -> int:
    """Units of 2⁻⁴⁰ of a charge: of ε, or of μ² where it is largest."""
    return charge.epsilon if isinstance(charge, BasicCharge) else int(charge.amounts.weights.max())


def write_charge(charge: Charge) -> Form:
    """(ε, δ) in units of 2⁻⁴⁰ and 2⁻¹⁰⁰, or a charge on each cell in units of 2⁻⁴⁰ of μ²."""
    if isinstance(charge, BasicCharge):
        epsilon, delta = write_integer(charge.epsilon), write_integer(charge.delta)
        return {"epsilon": epsilon, "delta": delta, "draws": charge.draws}
    return {"amounts": write_query(charge.amounts), "draws": charge.draws, "pure": charge.pure}


def read_charge(form: Form, domain: Domain) -> Charge:
    """The charge of `write_charge`."""
    if "amounts" in form:
        return CellCharge(read_query(form["amounts"], domain), form["draws"], form["pure"])
    return BasicCharge(int(form["epsilon"]), int(form["delta"]), form["draws"])


def _write_matrix(matrix: Any) -> Form:
    return {"shape": list(matrix.shape), "values": write_integers(matrix.reshape(-1))}


def _read_matrix(form: Form) -> Any:
    return np.array(read_integers(form["values"]), dtype=object).reshape(form["shape"])


def _write_release(release: Release) -> Form:
    return {
        "opening": release.opening,
        "allowance": write_integer(release.allowance),
        "charge": write_charge(release.charge),
        "measurement": write_measurement(release.measurement),
        "noisy": write_integers(release.noisy),
    }


def _read_release(form: Form, domain: Domain) -> Release:
    return Release(
        read_measurement(form["measurement"], domain),
        tuple(read_integers(form["noisy"])),
        read_charge(form["charge"], domain),
        int(form["allowance"]),
        form["opening"],
    )


def _write_reply(reply: Reply) -> Form:
    return {
        "queries": [write_query(query) for query in reply.queries],
        "answers": [None if shown is None else vars(shown) for shown in reply.answers],
        "measured": reply.measured,
    }


def _read_reply(form: Form, domain: Domain) -> Reply:
    answers = tuple(shown and Estimate(**shown) for shown in form["answers"])
    return Reply(_read_queries(form, domain), answers, form["measured"])


def _write_refusal(refusal: Refusal) -> Form:
    queries = [write_query(query) for query in refusal.queries]
    return {"queries": queries, "reason": refusal.reason, "counted": refusal.counted}


def _read_refusal(form: Form, domain: Domain) -> Refusal:
    return Refusal(_read_queries(form, domain), form["reason"], form["counted"])


def _read_queries(form: Form, domain: Domain) -> tuple[Query, ...]:
    return tuple(read_query(query, domain) for query in form["queries"])


def _write_raise(entry: Raise) -> Form:
    return {
        name: {"epsilon": budget.epsilon, "delta": budget.delta}
        for name, budget in (("old", entry.old), ("new", entry.new))
    }


def _read_raise(form: Form, domain: Domain) -> Raise:
    return Raise(Budget(**form["old"]), Budget(**form["new"]))


_WRITE: dict[type[Entry], Callable[[Any], Form]] = {
    Release: _write_release,
    Reply: _write_reply,
    Refusal: _write_refusal,
    Raise: _write_raise,
}
_READ: dict[str, Callable[[Form, Domain], Entry]] = {
    "release": _read_release,
    "reply": _read_reply,
    "refusal": _read_refusal,
    "raise": _read_raise,
}
