"""Queries mean the function of the cells that they were made from, whatever their classes."""

from __future__ import annotations

import numpy as np
import pytest
from draw import cells, domains, queries, workloads
from hypothesis import given
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.limits import MAX_CLASSES
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.queries.workload import Workload


@given(st.data())
def test_algebra_agrees_with_vectors_over_all_cells(data: st.DataObject) -> None:
    domain = data.draw(domains)
    p, q = data.draw(queries(domain)), data.draw(queries(domain))
    assert p.dot(q) == p.vector() @ q.vector()
    total = p.combine(q, np.add)
    assert (total.vector() == p.vector() + q.vector()).all()
    assert (total.canonical().vector() == total.vector()).all()
    assert p.sensitivity == abs(p.vector()).max()
    assert p.is_zero == (not p.vector().any())


@given(st.data())
def test_the_largest_on_some_cells_is_that_of_the_vectors(data: st.DataObject) -> None:
    domain = data.draw(domains)
    p, q = data.draw(queries(domain)), data.draw(queries(domain))
    p = p.combine(data.draw(queries(domain)), lambda one, other: abs(one) + abs(other))  # classes refined
    found = p.largest_on(q)
    assert found == np.where(q.vector() != 0, p.vector(), 0).max()
    assert type(found) is int


@given(st.data())
def test_a_sum_of_many_is_the_sum_of_the_vectors_whatever_was_refined_before(data: st.DataObject) -> None:
    domain = data.draw(domains)
    each = data.draw(st.lists(queries(domain), min_size=1, max_size=6))
    total = each[0]
    for query in [*each[1:], each[0]]:
        total = total.combine(query, np.add)
    assert (total.vector() == each[0].vector() + np.sum([one.vector() for one in each], axis=0)).all()
    assert total.canonical() == Query(
        domain,
        {name: range(domain[name].size) for name in domain.names},
        total.vector().reshape(domain.shape),
    )


@given(st.data())
def test_equal_functions_are_one_query(data: st.DataObject) -> None:
    domain = data.draw(domains)
    p, q = data.draw(queries(domain, 0, 1)), data.draw(queries(domain, 0, 1))
    assert (p == q) == bool((p.vector() == q.vector()).all())
    finest = {name: range(domain[name].size) for name in reversed(domain.names)}
    written_out = p.vector().reshape(domain.shape).transpose()
    assert Query(domain, finest, written_out) == p
    assert hash(Query(domain, finest, written_out)) == hash(p)


@given(st.data())
def test_the_answer_is_the_inner_product(data: st.DataObject) -> None:
    domain = data.draw(domains)
    query = data.draw(queries(domain))
    counts = data.draw(st.lists(st.integers(0, 2**40), min_size=domain.size, max_size=domain.size))
    levels = {axis: cells(domain)[:, axis] for axis in query.axes}
    exact = sum(int(w) * c for w, c in zip(query.vector(), counts, strict=True))
    assert query.answer(Marginal(levels, np.array(counts))) == exact


def test_sums_do_not_overflow() -> None:
    domain = lp.Domain(pay=lp.Integers(2**39, 2**39 + 1))
    query = Query(domain, {"pay": [0, 1]}, [2**39, 2**39 + 1])
    levels = {0: np.array([0, 1])}
    assert query.answer(Marginal(levels, np.array([2**40, 2**40]))) == 2**40 * (2**40 + 1)


@given(workloads())
def test_distinct_columns_are_those_of_the_written_out_workload(workload: list[Query]) -> None:
    domain = workload[0].domain
    columns = Workload(workload).columns
    written = np.stack([query.vector() for query in workload])
    where = columns.locate({axis: cells(domain)[:, axis] for axis in range(len(domain))}, domain.size)
    assert (columns.values[:, where] == written).all()
    assert columns.values.shape[1] == len(np.unique(written.T, axis=0))
    assert (Workload(workload).gram == written @ written.T).all()
    amounts = np.arange(columns.values.shape[1])
    assert (columns.spread(workload[0], amounts).vector() == where).all()


def test_a_large_domain_is_never_written_out() -> None:
    domain = lp.Domain((f"a{i}", lp.Integers(1, 100_000)) for i in range(8))
    workload = Workload([Query.count(domain, **{f"a{i}": range(1, 50)}) for i in range(8)])
    assert domain.size == 10**40
    assert workload.columns.values.shape == (8, 256)
    assert workload.gram[0, 0] == pytest.approx(49 * 1e35)


def test_limits_say_the_number_the_limit_and_what_to_coarsen() -> None:
    domain = lp.Domain(a=lp.Integers(1, 2_000), b=lp.Integers(1, 1_000))
    with pytest.raises(lp.UnsupportedQuery, match=r"2,000,000 classes.*limit is 1,000,000.*coarsen a"):
        Query(domain, {"a": range(2_000), "b": range(1_000)}, np.broadcast_to(1, (2_000, 1_000)))
    assert MAX_CLASSES == 1_000_000
    wide = lp.Domain((f"a{i}", lp.Integers(1, 30)) for i in range(6))
    every = [Query.count(wide, **{name: [value]}) for name in wide.names for value in range(1, 31)]
    with pytest.raises(
        lp.UnsupportedQuery, match=r"729,000,000 columns.*limit is 372,827: coarsen a0 \(30 levels\)"
    ):
        Workload(every).columns  # noqa: B018


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: lp.Domain(), "no attribute"),
        (lambda: lp.Domain([("a", lp.Booleans()), ("a", lp.Booleans())]), "a is declared twice"),
        (lambda: lp.Domain(age=lp.Booleans(), Age=lp.Booleans()), "differs in case only"),
        (lambda: lp.Domain(a=3), "no attribute"),
        (lambda: lp.Domain([("", lp.Booleans())]), "at least one character"),
        (lambda: lp.Integers(5, 4), "min 5 is above max 4"),
        (lambda: lp.Integers(1.5, 4), "whole number"),
        (lambda: lp.Integers(1, 2_000_001), "2,000,001 levels; the limit is 2,000,000: declare bins"),
        (lambda: lp.Bins([0]), "at least two edges"),
        (lambda: lp.Bins([0, 5, 5]), "overlap"),
        (lambda: lp.Bins([0, 9, 5]), "not sorted"),
        (lambda: lp.Bins([0, float("nan")]), "finite"),
        (lambda: lp.Bins([0, 1.5], whole=True), "not whole"),
        (lambda: lp.Bins("01"), "list of numbers"),
        (lambda: lp.Categories([]), "at least one value"),
        (lambda: lp.Categories(["a", "a"]), "declared twice"),
        (lambda: lp.Categories([1]), "not text"),
        (lambda: lp.Categories("ab"), "list of texts"),
        (lambda: lp.Dates("2024-02-01", "2024-01-01"), "is after"),
        (lambda: lp.Dates("2024-02-30", "2024-03-01"), "must be a date"),
        (lambda: lp.Dates("2024-01-01", "2024-03-01", step=0), "step 0"),
        (lambda: lp.Dates("2024-01-01", "9999-12-31"), "end of the calendar"),
        (lambda: lp.Bins([0, 10**400]), "finite"),
        (lambda: lp.Booleans(nullable="no"), "nullable"),
        (lambda: Workload([]), "at least one query"),
        (lambda: Query.count(lp.Domain(a=lp.Integers(1, 3)), a=[4]), "4 is not a declared value of a"),
        (lambda: Query.count(lp.Domain(a=lp.Integers(1, 3)), b=[4]), "no attribute b; declared: a"),
    ],
)
def test_a_wrong_declaration_is_one_clear_line(wrong: object, says: str) -> None:
    with pytest.raises(lp.DomainError, match=says) as caught:
        wrong()
    assert "\n" not in str(caught.value)


def test_real_weights_are_refused_and_say_what_to_do() -> None:
    with pytest.raises(lp.UnsupportedQuery, match="scale the query"):
        Query(lp.Domain(a=lp.Booleans()), {"a": [0, 1]}, [0.5, 1.0])
    with pytest.raises(lp.UnsupportedQuery, match="passes the limit"):
        Query(lp.Domain(a=lp.Booleans()), {"a": [0, 1]}, [0, 2**41])


def test_calendar_steps() -> None:
    months = lp.Dates("2024-01-31", "2024-06-15", step="month")
    assert [edge.isoformat() for edge in months.edges] == [
        *("2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30", "2024-05-31", "2024-06-16")
    ]
    assert lp.Dates("2024-01-01", "2024-01-31", step="week").values == 5
    assert lp.Dates("2020-01-01", "2024-12-31", step="year").label(4) == "2024-01-01"
    assert lp.Dates("9990-01-01", "9999-12-30", step="year").values == 10
