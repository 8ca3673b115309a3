"""Every entry as JSON, both ways: what a third party needs to replay a ledger.

An entry is one line of JSON with sorted keys, no spaces and ASCII only: ``position``, ``at`` (ISO 8601, UTC),
``analyst``, ``statement``, ``kind``, and what that kind holds.  Integers stand as `integers` says; floats as
the shortest decimal that gives the same double.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from laprasdp.errors import LaprasError, LedgerError
from laprasdp.privacy.budget import Budget
from laprasdp.privacy.filter import BasicCharge, CellCharge, Charge
from laprasdp.privacy.noise import LATTICE_BITS
from laprasdp.queries.distinct import counts_persons
from laprasdp.queries.domain import Domain
from laprasdp.queries.groups import Groups
from laprasdp.record.entries import Entry, Kept, Raise, Refusal, Release, Reply, Stamp
from laprasdp.record.estimate import Estimate
from laprasdp.record.functions import (
    Form,
    read_queries,
    read_query,
    shape_of,
    typed,
    write_queries,
    write_query,
)
from laprasdp.record.integers import (
    read_integer,
    read_integers,
    write_integer,
    write_integers,
)
from laprasdp.strategy.clipped import Clipped
from laprasdp.strategy.drawn import Drawn, DrawnPart
from laprasdp.strategy.factor import Factor
from laprasdp.strategy.kronecker import Marginals, Nodes
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.person_rows import PersonRows
from laprasdp.strategy.product_rows import ProductRows
from laprasdp.strategy.subspaces import Axes
from laprasdp.strategy.tree import StrategyTree

FORMAT, GROUPED, AGAIN, WHOLE, FITTED, PERSONS, TIMES, PRODUCT = range(1, 9)
"""
Version of a ledger; those that an entry states of itself where it holds groups, was measured again, has
Laplace noise on the whole numbers, has fitted values, counts persons, measures queries several times, or
measures a product of strategies.
"""

_ESTIMATE = {field.name for field in fields(Estimate)} - {"fitted"}
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
            **({"format": stated} if (stated := _stated(entry)) else {}),
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

    Notes
    -----
    Every value has the type that the form says, and every number is finite; whether it makes sense is for
    `laprasdp.ledger.claim` to say.
    """
    try:
        form = _READER.decode(text)
        if form.get("format", GROUPED) not in range(GROUPED, PRODUCT + 1):
            raise ValueError(f"it is of format {form['format']}: update laprasdp")
        at = datetime.fromisoformat(form["at"])
        if at.utcoffset() != timedelta(0):
            raise ValueError("its time is not in UTC")
        stamp = Stamp(at, _text_or_none(form["analyst"]), _text_or_none(form["statement"]))
        entry = _READ[form["kind"]](form, domain)
        if form.get("format") != _stated(entry):
            raise ValueError(
                "an entry states format 8 where it measures a product of strategies, 7 where it measures "
                "queries several times, 6 where it counts persons, 5 where values are fitted, 4 where noise "
                "is geometric, 3 where it was measured again, 2 where it holds groups"
            )
        return Kept(typed(form["position"], int), stamp, entry)
    except (
        ArithmeticError, AttributeError, LaprasError, LookupError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        what = str(error).splitlines()[0] if str(error) else ""
        raise LedgerError(f"the text is no entry of a ledger: {type(error).__name__}: {what}") from None


def kind_of(entry: Entry) -> str:
    """The name of an entry's kind."""
    return type(entry).__name__.lower()


def _stated(entry: Entry) -> int | None:
    """The version that an entry states, of what it holds that the first version of the form did not have."""
    held = entry.measurement if isinstance(entry, Release) else entry
    if isinstance(held, ProductRows):
        return PRODUCT
    queries = getattr(held, "queries", None)
    if getattr(held, "times", ()):
        return TIMES
    if counts_persons(queries or ()):
        return PERSONS
    if isinstance(entry, Release) and (entry.measurement.discrete or entry.measurement.scale_bits):
        return WHOLE
    if isinstance(entry, Reply) and any(one is not None and one.fitted is not None for one in entry.answers):
        return FITTED
    if isinstance(entry, Reply) and any(one is not None and one.law == "geometric" for one in entry.answers):
        return WHOLE
    if isinstance(entry, Reply) and entry.again:
        return AGAIN
    return GROUPED if isinstance(queries, Groups) else None


def write_measurement(measurement: Measurement) -> Form:
    """A strategy on its grid: bits, law and scale of the noise, and its rows or its marginals."""
    form: Form = {"bits": measurement.bits, "law": measurement.law, "scale": write_integer(measurement.scale)}
    if measurement.scale_bits:
        form["scale_bits"] = measurement.scale_bits
    if isinstance(measurement, Rows):
        form |= write_queries(measurement.queries)
        if isinstance(measurement.matrix, int):
            form["multiple"] = write_integer(measurement.matrix)
            return {**form, "times": write_integers(measurement.times)} if measurement.times else form
        if isinstance(measurement, Clipped):
            form["limit"] = write_integer(measurement.limit)
        return {**form, "matrix": _write_matrix(measurement.matrix)}
    if isinstance(measurement, Drawn):
        return {**form, "drawn": _write_parts(measurement)}
    assert isinstance(measurement, Marginals | ProductRows)
    names = measurement.domain.names
    if isinstance(measurement, ProductRows):
        matrices = map(_write_matrix, measurement.factors)
        return {**form, "product": dict(zip(names, matrices, strict=True))}
    return {
        **form,
        "sets": [[names[axis] for axis in axes] for axes in measurement.sets],
        "multipliers": write_integers(measurement.multipliers),
        "factors": {names[axis]: _write_factor(factor) for axis, factor in measurement.factors.items()},
    }


def read_measurement(form: Form, domain: Domain) -> Measurement:
    """The measurement of `write_measurement`."""
    noise: Any = {
        "bits": _read_bits(form["bits"]),
        "law": typed(form["law"], str),
        "scale": read_integer(form["scale"]),
        "scale_bits": _read_bits(form.get("scale_bits", 0)),
    }
    if "drawn" in form:
        return Drawn(domain, tuple(_read_parts(form["drawn"], domain)), **noise)
    if "sets" in form:
        factors = {
            domain.axis(name): _read_factor(one, domain[name].size) for name, one in form["factors"].items()
        }
        sets = tuple(tuple(domain.axis(name) for name in names) for names in form["sets"])
        return Marginals(domain, sets, tuple(read_integers(form["multipliers"])), factors, **noise)
    if "product" in form:
        if form["product"].keys() != set(domain.names):
            raise ValueError("a product of strategies has a factor for each attribute")
        return ProductRows(
            domain, tuple(_read_whole(form["product"][name]) for name in domain.names), **noise
        )
    queries = read_queries(form, domain)
    if "multiple" in form:
        kind = PersonRows if counts_persons(queries) else Rows
        times = tuple(read_integers(form["times"])) if "times" in form else ()
        return kind(queries, read_integer(form["multiple"]), times=times, **noise)
    if counts_persons(queries):
        raise ValueError("persons are counted one by one")
    if isinstance(queries, Groups):
        raise ValueError("groups are measured one by one")
    matrix = np.array(_read_matrix(form["matrix"]), dtype=object)
    if "limit" in form:
        return Clipped(queries, matrix, limit=read_integer(form["limit"]), **noise)
    return Rows(queries, matrix, **noise)


def _read_bits(form: Any) -> int:
    """Binary places of a grid; no release has more than the lattice of Gaussian noise."""
    if not 0 <= typed(form, int) <= LATTICE_BITS:
        raise ValueError(f"{form} binary places are not between 0 and {LATTICE_BITS}")
    return int(form)


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
        draws, pure = typed(form["draws"], int), typed(form["pure"], bool)
        return CellCharge(read_query(form["amounts"], domain), draws, pure)
    epsilon, delta = read_integer(form["epsilon"]), read_integer(form["delta"])
    return BasicCharge(epsilon, delta, typed(form["draws"], int))


def _write_matrix(matrix: Any) -> Form:
    return {"shape": list(matrix.shape), "values": write_integers(matrix.reshape(-1))}


def _read_matrix(form: Form) -> Any:
    return np.array(read_integers(form["values"]), dtype=object).reshape(shape_of(form))


def _write_factor(factor: Factor) -> Form:
    """A matrix; of a long attribute, that of the nodes of each depth."""
    if isinstance(factor, StrategyTree):
        return {"depths": list(map(_write_matrix, factor.matrices)), "levels": factor.levels}
    return _write_matrix(factor)


def _read_factor(form: Form, levels: int) -> Factor:
    if "depths" in form:
        if typed(form["levels"], int) != levels:
            raise ValueError("a tree is of another attribute")
        return StrategyTree(levels, tuple(map(_read_whole, form["depths"])))
    return _read_whole(form)


def _read_whole(form: Form) -> npt.NDArray[np.int64]:
    return np.array(_read_matrix(form), dtype=np.int64)


def _write_parts(measurement: Drawn) -> list[Form]:
    """For each set of attributes, one row of nodes for each part."""
    names, found = measurement.domain.names, dict[Axes, list[Nodes]]()
    for axes, nodes in measurement.parts:
        found.setdefault(axes, []).append(nodes)
    return [
        {"nodes": _write_matrix(np.array(nodes)), "set": [names[axis] for axis in axes]}
        for axes, nodes in found.items()
    ]


def _read_parts(form: list[Form], domain: Domain) -> Iterator[DrawnPart]:
    for one in typed(form, list):
        axes = tuple(domain.axis(name) for name in one["set"])
        yield from ((axes, tuple(nodes)) for nodes in _read_matrix(one["nodes"]).tolist())


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
        read_integer(form["allowance"]),
        typed(form["opening"], bool),
    )


def _write_reply(reply: Reply) -> Form:
    return {
        **write_queries(reply.queries),
        "answers": [None if shown is None else _write_answer(shown) for shown in reply.answers],
        "measured": reply.measured,
        **({"again": True} if reply.again else {}),
    }


def _read_reply(form: Form, domain: Domain) -> Reply:
    answers = tuple(map(_read_answer, typed(form["answers"], list)))
    measured, again = typed(form["measured"], bool), typed(form.get("again", False), bool)
    return Reply(read_queries(form, domain), answers, measured, again)


def _write_answer(shown: Estimate) -> Form:
    return {name: part for name, part in vars(shown).items() if name != "fitted" or part is not None}


def _read_answer(form: Form | None) -> Estimate | None:
    if form is None:
        return None
    if form.keys() - {"fitted"} != _ESTIMATE:
        raise ValueError("an answer has other keys")
    for name in ("value", "variance", "parts", *(["fitted"] if "fitted" in form else [])):
        if not math.isfinite(typed(form[name], float)):
            raise ValueError(f"{name} is no finite number")
    return Estimate(**form)


def _write_refusal(refusal: Refusal) -> Form:
    return {**write_queries(refusal.queries), "reason": refusal.reason, "counted": refusal.counted}


def _read_refusal(form: Form, domain: Domain) -> Refusal:
    reason, counted = typed(form["reason"], str), typed(form["counted"], bool)
    return Refusal(read_queries(form, domain), reason, counted)


def _write_raise(entry: Raise) -> Form:
    return {
        name: {"epsilon": budget.epsilon, "delta": budget.delta}
        for name, budget in (("old", entry.old), ("new", entry.new))
    }


def _read_raise(form: Form, domain: Domain) -> Raise:
    return Raise(Budget(**form["old"]), Budget(**form["new"]))


def _text_or_none(value: Any) -> str | None:
    return None if value is None else typed(value, str)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


_READER = json.JSONDecoder(parse_constant=_no_number)
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
