"""PRIMM's pure release on some thousand cells: where it is taken, what it costs, and what comes after."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from draw import MemoryTable

import laprasdp as lp
from laprasdp.ledger.memory import MemoryLedger
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.design_factored import ProductKind, ProductQueries
from laprasdp.policy.kinds import kinds_of_query
from laprasdp.policy.primm_choice import heir
from laprasdp.policy.primm_factored import PrimmFactored, factored
from laprasdp.policy.primm_product import PrimmProduct, played
from laprasdp.policy.rollout import play
from laprasdp.policy.setting import Setting
from laprasdp.privacy.filter import CellCharge
from laprasdp.privacy.noise import ExactNoise
from laprasdp.queries.query import Query
from laprasdp.record.entries import Release
from laprasdp.record.format import read_measurement
from laprasdp.strategy.product_rows import ProductRows, fits_product
from laprasdp.stream.opening import open_session

LINE = lp.Domain(cell=lp.Integers(1, 300))
SQUARE = lp.Domain(x=lp.Integers(0, 32), y=lp.Integers(0, 32))
BUDGET = lp.Budget(1, 1e-9)
COUNTS = np.arange(33 * 33) % 11
TABLE = MemoryTable(SQUARE, COUNTS)
PREDICTED = [Query.count(SQUARE, x=range(low, low + 6)) for low in range(0, 24, 3)]
ASKED = [Query.count(SQUARE, x=[k], y=range(k, 33)) for k in range(4)] + [
    Query(SQUARE, {"x": range(33)}, np.arange(33) % 3),
    Query.constant(SQUARE, 1),
]


def opened(**more: object) -> lp.Session:
    given: dict[str, object] = {"budget": BUDGET, "horizon": 100, "policy": "primm"}
    return open_session(TABLE, SQUARE, **given | more)


@pytest.mark.parametrize(("delta", "pure"), [(1e-9, True), (1e-3, False)])
def test_it_is_taken_where_a_stream_of_any_kind_is_better_off(delta: float, pure: bool) -> None:
    """By the mean cube over the kinds, none by 1.3; by streams that the choice has not seen."""
    setting = Setting(SQUARE, lp.Budget(1, delta), 100)
    chosen = policy_named("primm", setting)
    assert isinstance(chosen, PrimmFactored) == pure
    product = PrimmProduct(setting)
    other = factored(setting, (product, played(setting, product.design)))[0]
    kinds = kinds_of_query(SQUARE, (), 30, np.random.default_rng(9))
    ratios = [
        np.sqrt(np.array(play(other, asked), dtype=float)).mean()
        / np.sqrt(np.array(play(product, asked), dtype=float)).mean()
        for asked in kinds.values()
    ]
    better = max(ratios) < 1.3 and np.mean(np.array(ratios) ** 3) < 1
    assert better == pure
    if pure:
        assert min(ratios) < 0.5  # what is gained


def test_gaussian_noise_is_kept_to_where_it_is_wanted_or_the_table_has_no_few_cells() -> None:
    setting = Setting(SQUARE, BUDGET, 100)
    assert isinstance(policy_named("primm", replace(setting, release="gaussian")), PrimmProduct)
    assert isinstance(
        policy_named("primm", Setting(SQUARE, lp.Budget(1, 0.1), 100, release="pure")), PrimmFactored
    )
    for sizes in ((5_000,), (1_030, 3), (70, 70)):
        domain = lp.Domain(**{f"a{k}": lp.Integers(1, size) for k, size in enumerate(sizes)})
        assert not fits_product(domain)
        assert isinstance(policy_named("primm", Setting(domain, BUDGET, 100)), PrimmProduct)
        with pytest.raises(lp.UnsupportedQuery, match=r"4,096 cells at most, of attributes of 1,024"):
            policy_named("primm", Setting(domain, BUDGET, 100, release="pure"))


def test_declared_shapes_are_what_it_is_judged_by() -> None:
    """Values of both attributes, asked of a table whose ranges a pure release would serve badly."""
    domain = lp.Domain(x=lp.Integers(0, 63), y=lp.Integers(0, 63))
    budget = lp.Budget(1, 1e-6)
    assert isinstance(policy_named("primm", Setting(domain, budget, 100)), PrimmProduct)
    declared = policy_named("primm", Setting(domain, budget, 100, shapes=["values of up to two attributes"]))
    assert isinstance(declared, PrimmFactored)
    cell = Query.count(domain, x=[3], y=[4])
    assert declared.expected_variance(cell) < 36


def test_predicted_queries_are_better_and_others_hardly_worse() -> None:
    setting = Setting(SQUARE, BUDGET, 100, tuple(PREDICTED))
    alone, told = policy_named("primm", replace(setting, predictions=())), policy_named("primm", setting)
    known = policy_named("primm", replace(setting, overlap=1.0))
    assert isinstance(alone, PrimmFactored)
    assert isinstance(told, PrimmFactored)

    def mean(policy: object, queries: object) -> float:
        assert isinstance(policy, PrimmFactored)
        return float(np.mean([policy.expected_variance(query) ** 0.5 for query in queries]))

    assert mean(told, PREDICTED) <= mean(alone, PREDICTED) * 1.001
    for queries in kinds_of_query(SQUARE, (), 20, np.random.default_rng(3)).values():
        assert mean(told, queries) < 1.35 * mean(alone, queries)
    if isinstance(known, PrimmFactored):
        assert mean(known, PREDICTED) < mean(told, PREDICTED)


def test_it_is_one_release_of_the_whole_epsilon(tmp_path: Path) -> None:
    """Then all is answered from it, by this session and by the next one; and verify finds nothing."""
    ledger = SQLLedger(tmp_path / "pure.ledger")
    with opened(ledger=ledger) as session:
        shown = [session.ask(query) for query in ASKED]
        assert all(isinstance(one, lp.Answer) and one.charge == 0 for one in shown)
        (release,) = (kept.entry for kept in ledger.since(0) if isinstance(kept.entry, Release))
        assert isinstance(release.measurement, ProductRows)
        assert isinstance(release.charge, CellCharge)
        assert release.charge.pure
        strength = release.measurement.laplace_epsilon(1)
        assert Fraction(1) - Fraction(1, 2**20) < strength <= Fraction(BUDGET.epsilon)
        assert session.remaining == 0
    with opened(ledger=ledger) as again:
        assert [again.ask(query).value for query in ASKED] == [one.value for one in shown]
    assert verify(ledger) == []


def test_a_budget_is_raised_after_it(tmp_path: Path) -> None:
    """By the same rows again: least squares of both is what either tells, weighed; what was shown stays."""
    ledger = SQLLedger(tmp_path / "raised.ledger")
    with opened(ledger=ledger) as session:
        first = session.ask(ASKED[0])
        session.raise_budget(lp.Budget(3, 1e-9))
        fresh = session.ask(ASKED[1])
        assert [one.reason for one in fresh.released] == ["raise"]
        assert session.ask(ASKED[0]).value == first.value
        variances = [
            kept.entry.measurement.noise_variance
            for kept in ledger.since(0)
            if isinstance(kept.entry, Release)
        ]
        assert len(variances) == 2
        expected = 1 / (1 + variances[0] / variances[1])
        alone = policy_named("primm", Setting(SQUARE, BUDGET, 100))
        assert isinstance(alone, PrimmFactored)
        assert fresh.std**2 == pytest.approx(alone.expected_variance(ASKED[1]) * expected)
    with opened(ledger=ledger, budget=lp.Budget(3, 1e-9)) as again:
        assert again.ask(ASKED[1]).value == fresh.value
    assert verify(ledger) == []


def test_a_ledger_that_was_begun_with_gaussian_noise_goes_on_so() -> None:
    """As before there were such releases; and one that was begun with one, whatever is chosen now."""
    setting = Setting(SQUARE, BUDGET, 100)
    product = PrimmProduct(setting)
    grant = product.due()
    assert grant is not None
    release = Release(
        grant.measurement, (0,) * grant.measurement.draws, grant.charge, grant.allowance, opening=True
    )
    pure = policy_named("primm", setting)
    assert isinstance(heir(pure, release), PrimmProduct)
    grant = pure.due()
    assert grant is not None
    release = Release(
        grant.measurement, (0,) * grant.measurement.draws, grant.charge, grant.allowance, opening=True
    )
    found = heir(product, release)
    assert isinstance(found, PrimmFactored)
    found.learn(release)
    assert found.latest(ASKED[0]).variance == pytest.approx(pure.expected_variance(ASKED[0]))


def test_persons_with_several_rows_get_more_noise_and_are_not_counted_afterwards() -> None:
    unit = lp.PrivacyUnit("id", 3)
    table = MemoryTable(SQUARE, COUNTS, unit=unit)
    session = open_session(
        table, SQUARE, budget=BUDGET, horizon=100, policy="primm", unit=unit, release="pure"
    )
    alone = policy_named("primm", Setting(SQUARE, BUDGET, 100, unit=unit, release="pure"))
    assert isinstance(alone, PrimmFactored)
    found = session.ask(ASKED[0])
    assert found.std**2 == pytest.approx(alone.expected_variance(ASKED[0]))
    one = factored(Setting(SQUARE, BUDGET, 100))[0]
    assert found.std == pytest.approx(3 * one.expected_variance(ASKED[0]) ** 0.5, rel=0.02)
    with pytest.raises(lp.BudgetExhausted, match="tells nothing of persons"):
        session.ask("SELECT COUNT(DISTINCT id) FROM t")


def test_a_ratio_of_groups_has_an_interval_that_holds() -> None:
    """Shares of all rows: of 60 sessions, as many hold the truth as an 80% interval says."""
    setting, held = Setting(SQUARE, BUDGET, 100), 0
    chosen = policy_named("primm", setting)
    assert isinstance(chosen, PrimmFactored)
    for _ in range(60):
        fresh = PrimmFactored(setting, chosen.strategy)
        with lp.Session(TABLE, fresh, noise=ExactNoise(), ledger=MemoryLedger()) as session:
            rows = session.ask("SELECT COUNT_IF(x < 11) * 1.0 / COUNT(*) AS share FROM t")
        low, high = rows[0]["share"].interval(0.8)
        held += low <= COUNTS.reshape(33, 33)[:11].sum() / COUNTS.sum() <= high
    assert 36 <= held <= 58  # five sigma below, three above


@pytest.mark.parametrize("overlap", [0.0, 1.0])
def test_what_is_known_of_the_overlap_decides_what_it_is_designed_for(overlap: float) -> None:
    setting = Setting(SQUARE, BUDGET, 100, tuple(PREDICTED), overlap=overlap, release="pure")
    other = replace(setting, overlap=1 - overlap)
    mine, theirs = (policy_named("primm", one) for one in (setting, other))
    assert isinstance(mine, PrimmFactored)
    assert isinstance(theirs, PrimmFactored)
    asked = PREDICTED if overlap else ASKED
    mean = [np.mean([one.expected_variance(query) for query in asked]) for one in (mine, theirs)]
    assert mean[0] < mean[1]


def test_values_are_fitted_to_it() -> None:
    """Nearer to a table of independent attributes than what was released, in the mean over single cells."""
    rng = np.random.default_rng(4)
    shares = [rng.dirichlet(np.ones(33)) for _ in range(2)]
    counts = rng.multinomial(3_000, np.outer(*shares).reshape(-1))
    table = MemoryTable(SQUARE, counts)
    given = {"budget": BUDGET, "horizon": 100, "policy": "primm", "public": True}
    with open_session(table, SQUARE, post="fitted", **given) as session:
        cells = [Query.count(SQUARE, x=[k], y=[k % 7]) for k in range(33)]
        answers = [session.ask(query) for query in cells]
    truth = [int(query.vector() @ counts) for query in cells]
    linear = np.mean([abs(one.value - true) for one, true in zip(answers, truth, strict=True)])
    fitted = np.mean([abs(one.fitted - true) for one, true in zip(answers, truth, strict=True)])
    assert fitted < 0.8 * linear


def test_counts_of_persons_can_be_asked_where_nothing_else_is_declared() -> None:
    """A pure release tells nothing of persons, so it is not chosen where several rows may be of one."""
    unit = lp.PrivacyUnit("id", 3)
    assert isinstance(policy_named("primm", Setting(SQUARE, BUDGET, 100)), PrimmFactored)
    assert isinstance(policy_named("primm", Setting(SQUARE, BUDGET, 100, unit=unit)), PrimmProduct)


@pytest.mark.parametrize(
    ("domain", "begun", "kind"),
    [(SQUARE, "either", PrimmFactored), (SQUARE, "gaussian", PrimmProduct), (LINE, "gaussian", PrimmProduct)],
)
def test_a_long_ledger_goes_on_from_its_snapshot(
    domain: lp.Domain, begun: str, kind: type, tmp_path: Path
) -> None:
    """Also where it was begun otherwise than it would be now, which its entries tell and no setting."""
    table = MemoryTable(domain, np.arange(domain.size) % 11)
    more = {"budget": BUDGET, "horizon": 2_000, "clock": lambda: datetime(2026, 1, 1, tzinfo=UTC)}
    earlier, ledger = MemoryLedger(), SQLLedger(tmp_path / "long.ledger")
    cells = [
        Query(domain, {domain.names[0]: np.arange(domain.shape[0]) < k}, np.array([0, 1]))
        for k in (9, 20, 31)
    ]
    with open_session(table, domain, ledger=earlier, release=begun, **more) as session:
        shown = [session.ask(cells[place % 2]).value for place in range(1_100)]
        with open_session(table, domain, ledger=ledger, **more) as other:
            for kept in earlier.since(0):
                with ledger.transaction(kept.stamp) as transaction:
                    transaction.append(kept.entry)
            assert other.ask(cells[0]).value == shown[0]
    assert ledger.saved() is not None
    with open_session(table, domain, ledger=SQLLedger(tmp_path / "long.ledger"), **more) as again:
        policy = again._following.state.policy
        assert type(policy) is kind
        assert again._following._saved  # it was not all replayed
        assert again.ask(cells[1]).value == shown[1]
        again.raise_budget(lp.Budget(2, 1e-9))
        assert again.ask(cells[2]).std > 0
    assert verify(ledger) == []


def test_a_product_of_a_table_that_is_too_large_is_refused_before_anything_is_made() -> None:
    wide = lp.Domain(**{f"a{k}": lp.Integers(1, 10) for k in range(15)})
    factors = tuple(np.eye(10, dtype=np.int64) for _ in range(15))
    with pytest.raises(lp.UnsupportedQuery, match=r"4,096 cells at most"):
        ProductRows(wide, factors, bits=0)
    each = {"shape": [10, 10], "values": np.eye(10, dtype=int).ravel().tolist()}
    form = {"product": dict.fromkeys(wide.names, each)}
    with pytest.raises(lp.UnsupportedQuery, match=r"4,096 cells at most"):
        read_measurement({**form, "bits": 0, "law": "laplace", "scale": 1}, wide)


def test_factors_tell_their_levels_apart() -> None:
    """In any order of rows; what does not is refused, also where each row is a level's own."""
    domain = lp.Domain(x=lp.Integers(1, 3))
    apart = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0]])
    for rows in (np.eye(3, dtype=np.int64), np.eye(3, dtype=np.int64)[::-1], apart):
        assert ProductRows(domain, (np.ascontiguousarray(rows),), bits=0).draws == len(rows)
    for rows in (np.diag([1, 0, 1]), np.array([[1, 1, 0], [2, 2, 0], [0, 0, 1]]), apart[:2]):
        with pytest.raises(lp.DomainError, match="does not tell its levels apart"):
            ProductRows(domain, (rows,), bits=0)


def test_categories_that_may_be_missing_and_periods() -> None:
    """Of other kinds of attribute, a SUM and a table in periods."""
    domain = lp.Domain(
        city=lp.Categories([f"c{k}" for k in range(40)], other=True, nullable=True),
        day=lp.Dates("2026-01-01", "2026-02-10", step=1),
    )
    table = MemoryTable(domain, np.arange(domain.size) % 5)
    with open_session(table, domain, budget=BUDGET, horizon=100, policy="primm") as session:
        assert isinstance(session._following.state.policy, PrimmFactored)
        rows = session.ask("SELECT city, COUNT(*) AS n FROM t GROUP BY city ORDER BY n DESC LIMIT 3")
        assert len(rows) == 3
        assert session.ask("SELECT COUNT(*) FROM t WHERE city IS NULL").std > 0
        total = session.ask("SELECT COUNT(*) FROM t WHERE day >= DATE '2026-01-15'")
        assert (
            abs(total.value - sum(np.arange(domain.size).reshape(42, 41)[:, 14:].ravel() % 5)) < 8 * total.std
        )


def test_predicted_queries_weigh_as_their_second_moments_do() -> None:
    """As if each moment were written out, which a thousand of 512 levels would take two gigabytes for."""
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.ones(len(PREDICTED)))
    mine = ProductQueries.of(PREDICTED, weights)
    written = ProductKind(weights, tuple(np.einsum("mi,mj->mij", one, one) for one in mine.vectors))
    spreads = [np.eye(33) + rng.random((33, 33)) for _ in range(2)]
    assert np.allclose(mine.traces(spreads), written.traces(spreads))
    for axis in range(2):
        assert np.allclose(mine.moment(axis, weights), written.moment(axis, weights))
    variances = [query.vector() @ np.kron(*spreads) @ query.vector() for query in PREDICTED]
    assert np.allclose(mine.traces(spreads).prod(axis=0), variances)  # each of them is a product


def test_of_many_predictions_the_most_important_decide() -> None:
    """To play streams to a thousand would take minutes; all of them are answered."""
    many = [Query.count(SQUARE, x=range(low, high)) for low in range(32) for high in range(low + 1, 33)][:320]
    few = tuple(float(k < 8) + 1e-3 for k in range(320))
    chosen = policy_named("primm", Setting(SQUARE, BUDGET, 100, tuple(many), expected=few))
    only = policy_named("primm", Setting(SQUARE, BUDGET, 100, tuple(many[:300]), expected=few[:300]))
    assert isinstance(chosen, PrimmFactored)
    assert isinstance(only, PrimmFactored)
    assert len(chosen.setting.predictions) == 320
    assert chosen.expected_variance(many[-1]) == pytest.approx(only.expected_variance(many[-1]))
