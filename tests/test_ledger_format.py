"""The form of entries: what is read is what was written, bit for bit; and it is as documented."""

from __future__ import annotations

import base64
import json
import zlib
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from draw import domains, queries
from hypothesis import given
from hypothesis import strategies as st
from sources import DOMAIN

import laprasdp as lp
from laprasdp.privacy.filter import BasicCharge, CellCharge
from laprasdp.queries.query import Query
from laprasdp.record.entries import Entry, Kept, Raise, Refusal, Release, Reply, Stamp
from laprasdp.record.estimate import Estimate
from laprasdp.record.format import read_entry, read_measurement, write_entry, write_measurement
from laprasdp.record.functions import read_queries, read_query, write_query
from laprasdp.record.integers import read_integers, read_labels, write_integer, write_integers, write_labels
from laprasdp.record.settings import domain_of
from laprasdp.strategy.kronecker import design_marginals
from laprasdp.strategy.measurement import Measurement, Rows
from laprasdp.strategy.product_rows import ProductRows
from laprasdp.strategy.strength import measure, quantize

AT = datetime(2024, 2, 29, 12, 30, 0, 1, tzinfo=UTC)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.integers(-(2**80), 2**80) | st.integers(-9, 9), max_size=80))
def test_integers(values: list[int]) -> None:
    form = json.loads(json.dumps(write_integers(values)))
    assert read_integers(form) == values
    if isinstance(form, list):  # no number that a reader of doubles would round
        assert all(isinstance(value, str) or abs(value) < 2**53 for value in form)


def test_packed_integers_are_what_the_page_says() -> None:
    values = [*range(-20, 20), 2**62]
    words = zlib.decompress(base64.b64decode(write_integers(values)["zlib"]))
    assert [
        int.from_bytes(words[i : i + 8], "little", signed=True) for i in range(0, len(words), 8)
    ] == values
    assert (write_integer(2**53), write_integer(-5)) == (str(2**53), -5)


@pytest.mark.parametrize("runs", [10, 11, 400])
def test_labels_in_few_runs_are_what_the_page_says(runs: int) -> None:
    labels = np.arange(runs).repeat(4)[: 4 * runs - 1 if runs == 11 else None]
    written = write_labels(labels)
    assert (written == {"runs": [number for label in range(runs) for number in (label, 4)]}) == (runs == 10)
    assert ("runs" in written) == (runs != 11)
    assert read_labels(written, "a", len(labels)).tolist() == labels.tolist()
    assert (
        read_labels(write_integers(labels), "a", len(labels)).tolist() == labels.tolist()
    )  # earlier ledgers


def test_what_was_read_is_not_taken_for_what_only_looks_alike() -> None:
    """What was read is kept by its text: 1, true and 1.0 are equal in Python."""
    domain = lp.Domain(a=lp.Integers(0, 39))
    query = write_query(lp.Query.count(domain, a=range(20)))
    for _ in range(2):
        (first,), (again,) = (read_queries({"queries": [query]}, domain) for _ in range(2))
        assert first is again
    for form in (
        {**query, "weights": [True, 0]},
        {**query, "weights": [1.0, 0]},
        {**query, "shape": [2.0]},
        {**query, "classes": {"a": {"runs": [False, 20, 1, 20]}}},
        {**query, "classes": {"a": {"runs": [0, 20, 1, 19]}}},
        {**query, "classes": {"a": {"runs": [0, 20, 1, 20, 2]}}},
        {**query, "classes": {"a": {"runs": []}}},
    ):
        with pytest.raises((lp.LedgerError, ValueError, TypeError)):
            read_queries({"queries": [form]}, domain)
    other = lp.Domain(a=lp.Integers(1, 40))
    assert read_queries({"queries": [query]}, other)[0].domain is other


@given(st.data())
def test_queries(data: st.DataObject) -> None:
    domain = data.draw(domains)
    one, other = data.draw(queries(domain)), data.draw(queries(domain))
    for query in (one, one.combine(other, np.add), one.spread(one.weights * 2**55)):
        again = read_query(json.loads(json.dumps(write_query(query))), domain)
        assert again == query
        assert again.weights.shape == query.weights.shape
        assert (again.vector() == query.vector()).all()
    assert read_query(write_query(one), domain).canonical().key == one.key


def same(a: Any, b: Any) -> bool:
    """Whether two parts of entries are equal, arrays by their values."""
    if isinstance(a, Query):
        return bool(a == b)
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and a.tolist() == b.tolist()
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and all(same(getattr(a, n), getattr(b, n)) for n in a.__dataclass_fields__)
    return bool(a == b)


def there_and_back(entry: Entry, domain: lp.Domain) -> None:
    kept = Kept(2**40, Stamp(AT, "ada", "SELECT '\ud800\0 ε'"), entry)
    text = write_entry(kept)
    assert text.isascii()
    assert "\n" not in text
    again = read_entry(text, domain)
    assert same(again, kept)
    assert write_entry(again) == text


@st.composite
def measurements(draw: st.DrawFn) -> tuple[lp.Domain, Measurement]:
    domain = draw(domains)
    asked = draw(
        st.lists(queries(domain).filter(lambda q: not q.is_zero), min_size=1, max_size=3, unique=True)
    )
    kind = draw(st.sampled_from(["measure", "quantize", "laplace", "marginals", "product"]))
    mu_squared = draw(st.fractions(Fraction(1, 1000), 4))
    if kind == "measure":
        return domain, measure(asked, mu_squared)
    if kind == "laplace":
        finer = draw(st.sampled_from([0, 0, 3, 30]))
        scale, bits = draw(st.integers(1, 2**40)) * 2 + 1, draw(st.sampled_from([0, 20]))
        return domain, Rows(tuple(asked), 1 << bits, bits=bits, law="laplace", scale=scale, scale_bits=finer)
    if kind == "quantize":
        return domain, quantize(asked, np.eye(len(asked)) / 9, mu_squared)
    wide = lp.Domain(a=lp.Integers(0, 5), b=lp.Booleans(), c=lp.Categories(["x", "y", "z"]))
    if kind == "product":
        entries = st.integers(-(2**30), 2**30)
        factors = [
            np.array([*np.eye(size, dtype=np.int64), draw(st.lists(entries, min_size=size, max_size=size))])
            for size in wide.shape
        ]
        return wide, ProductRows(
            wide, tuple(factors), bits=3, law="laplace", scale=draw(st.integers(1, 2**52))
        )
    return wide, design_marginals(wide, {(): 1.0, (0,): 2.0, (0, 2): 1.0, (1,): 0.5}, {}, mu_squared)


@given(st.data())
def test_releases(data: st.DataObject) -> None:
    domain, measurement = data.draw(measurements())
    noisy = data.draw(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=40))
    charges = [BasicCharge(2**70, 2**99, 3)]
    if measurement.law == "gaussian":
        charges.append(CellCharge(measurement.amounts(2), measurement.draws))
    for charge in charges:
        there_and_back(Release(measurement, tuple(noisy), charge, 2**60, False), domain)
    text = write_entry(Kept(0, Stamp(AT), Release(measurement, tuple(noisy), charges[0], 1, True)))
    again = read_entry(text, domain).entry
    assert isinstance(again, Release)
    assert again.measurement.draws == measurement.draws
    if measurement.law == "gaussian":
        assert again.measurement.amounts(3) == measurement.amounts(3)


@given(st.data())
def test_replies_and_refusals(data: st.DataObject) -> None:
    domain = data.draw(domains)
    asked = tuple(data.draw(st.lists(queries(domain), min_size=1, max_size=4)))
    sources, laws = (
        st.sampled_from(["predicted", "measured"]),
        st.sampled_from(["gaussian", "laplace", "geometric"]),
    )
    estimates = st.builds(Estimate, finite, finite, sources, laws)
    answers = tuple(data.draw(st.none() | estimates) for _ in asked)
    there_and_back(Reply(asked, answers, data.draw(st.booleans())), domain)
    there_and_back(Refusal(asked, data.draw(st.text()), data.draw(st.booleans())), domain)
    there_and_back(Raise(lp.Budget(0.1 + 0.2, 1e-7), lp.Budget(1, 1 / 3)), domain)


def test_times_are_kept_in_utc() -> None:
    east = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    text = write_entry(Kept(0, Stamp(east), Refusal((), "no")))
    assert json.loads(text)["at"] == "2024-02-29T12:30:00.000001+00:00"


def test_a_domain_from_its_settings() -> None:
    every = lp.Domain(
        a=lp.Integers(-3, 5, nullable=True), b=lp.Bins([0, 0.5, 2], nullable=True),
        c=lp.Bins([0, 5], whole=True), e=lp.Booleans(nullable=True), d=lp.Categories(["x", ""], other=True),
        f=lp.Dates("2024-01-01", "2024-12-31", step="month"), g=lp.Dates("2024-01-01", "2024-01-09", step=3),
    )  # fmt: skip
    for domain in (every, DOMAIN):
        settings = json.loads(json.dumps({"domain": list(map(list, domain.settings().items()))}))
        assert domain_of(settings) == domain


GOOD: dict[str, Any] = {
    "position": 0, "at": "2024-02-29T00:00:00+00:00", "analyst": None, "statement": None, "kind": "refusal",
    "reason": "", "counted": True, "queries": [{"classes": {"a": [0, 1]}, "shape": [2], "weights": [0, 1]}],
}  # fmt: skip


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "gift"},
        {"at": "never"},
        {"at": "2024-02-29T00:00:00"},
        {"position": 0.0},
        {"counted": 1},
        {"analyst": ["ada"]},
        {"queries": [{"classes": {"a": [0, True]}, "shape": [2], "weights": [0, 1]}]},
        {"queries": [{"classes": {"a": [0, 1]}, "shape": [-1], "weights": [0, 1]}]},
        {"kind": "reply"},
        {"position": "first"},
        {"queries": [{"classes": {"a": [0, 9]}, "shape": [2], "weights": [0, 1]}]},
        {"queries": [{"classes": {"a": [0, -1]}, "shape": [2], "weights": [0, 1]}]},
        {"queries": [{"classes": {"a": [0, 1, 0]}, "shape": [2], "weights": [0, 1]}]},
        {"queries": [{"classes": {"b": [0, 1]}, "shape": [2], "weights": [0, 1]}]},
        {"queries": [{"classes": {"a": {"zlib": "AAAA"}}, "shape": [2], "weights": [0, 1]}]},
        {"queries": [{"classes": {"a": [0, 1]}, "shape": [3], "weights": [0, 1]}]},
        {"queries": [{"classes": {"a": [0, 1]}, "shape": [2], "weights": [0, "9223372036854775808"]}]},
    ],
)
def test_what_is_no_entry_is_one_clear_line(bad: dict[str, Any]) -> None:
    domain = lp.Domain(a=lp.Booleans())
    assert read_entry(json.dumps(GOOD), domain).entry == Refusal((Query.count(domain, a=True),), "")
    for text in (json.dumps(GOOD | bad), "", "[]"):
        with pytest.raises(lp.LedgerError, match="the text is no entry of a ledger") as caught:
            read_entry(text, domain)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("places", ["bits", "scale_bits"])
@pytest.mark.parametrize("count", [-1, 53, 2**70])
def test_a_grid_is_not_finer_than_the_lattice(places: str, count: int) -> None:
    """Read no further: 2^(2^70) would take all memory that there is."""
    form = write_measurement(Rows((Query.count(DOMAIN),), 1, bits=0, law="laplace", scale=3, scale_bits=1))
    assert read_measurement(form, DOMAIN).draws == 1
    with pytest.raises(ValueError, match="binary places are not between 0 and 52"):
        read_measurement(form | {places: count}, DOMAIN)
