"""Long lines: answers are least squares over a whole tree, whose nodes are drawn once and cost no more."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MemoryTable
from hypothesis import given, settings
from hypothesis import strategies as st

import laprasdp as lp
from laprasdp.belief.product import ProductBelief
from laprasdp.errors import DomainError, LedgerError
from laprasdp.ledger.once import Once
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.policy import primm_choice
from laprasdp.policy.pieces import alone, bounds_of, nearest, pieces
from laprasdp.policy.primm_dense import PrimmDense
from laprasdp.privacy.budget import MU_BITS
from laprasdp.privacy.filter import CellCharge
from laprasdp.privacy.noise import ExactNoise, SeededNoise
from laprasdp.queries.columns import distinct_columns
from laprasdp.queries.query import Query
from laprasdp.queries.runs import LONG, Runs, runs_of
from laprasdp.record.entries import Release
from laprasdp.record.format import read_measurement, write_measurement
from laprasdp.strategy.drawn import Drawn, DrawnPart
from laprasdp.strategy.factor import shape_of
from laprasdp.strategy.kronecker import Marginals, design_marginals
from laprasdp.strategy.tree import StrategyTree, branches_of

LINE = lp.Domain(x=lp.Integers(0, 299))
WIDE = lp.Domain(x=lp.Integers(0, 299), y=lp.Integers(0, 2))
FAR = lp.Domain(x=lp.Integers(0, 4_999), y=lp.Integers(0, 2))
SETS = {LINE: {(): 1.0, (0,): 4.0}, WIDE: {(): 1.0, (0,): 4.0, (1,): 1.0, (0, 1): 2.0}}


def ranged(domain: lp.Domain, low: int, high: int, y: Sequence[int] | None = None) -> Query:
    """Levels from `low` up to `high`, and some of y."""
    labels = {"x": (np.arange(domain.shape[0]) >= low) & (np.arange(domain.shape[0]) < high)}
    if y is not None:
        labels["y"] = np.isin(np.arange(domain.shape[1]), y)
    weights = np.zeros((2,) * len(labels), dtype=np.int64)
    weights[(1,) * len(labels)] = 1
    return Query(domain, labels, weights)


def drawn_queries(domain: lp.Domain, count: int, seed: int) -> list[Query]:
    rng, found = np.random.default_rng(seed), list[Query]()
    while len(found) < count:
        low, high = np.sort(rng.choice(301, 2, replace=False)).tolist()
        y = None if len(domain) == 1 or rng.random() < 0.5 else rng.choice(3, 2, replace=False).tolist()
        found.append(ranged(domain, low, high, y))
    return found


def whole(domain: lp.Domain) -> Marginals:
    return design_marginals(domain, SETS[domain], {}, Fraction(1, 20))


def every_part(release: Marginals) -> list[DrawnPart]:
    later = [axes for axes in release.sets if release.later(axes)]
    return sorted((axes, (node,)) for axes in later for node in range(int(release.long[0].shape.firsts[-1])))


def exact(release: Marginals, counts: np.ndarray[Any, Any]) -> tuple[list[int], Drawn]:
    """All exact answers, those of nodes last."""
    table = MemoryTable(release.domain, counts.reshape(-1).tolist())
    drawn = Drawn.of(release, every_part(release))
    return release.exact(table.marginal) + drawn.exact(table.marginal), drawn


def written(release: Marginals) -> np.ndarray[Any, Any]:
    """(rows, padded cells) the whole strategy, by Kronecker products over the padded line."""
    line, rows = release.long[0], list[np.ndarray[Any, Any]]()
    shape = line.shape
    tree = []
    for matrix, size, b in zip(line.matrices, shape.sizes, shape.branches, strict=True):
        blocks = shape.padded // (size * b)
        tree.append(np.kron(np.eye(blocks), np.kron(matrix, np.ones((1, size)))))
    kinds: dict[int, Any] = {0: np.concatenate(tree)} | {
        axis: factor for axis, factor in release.factors.items() if axis
    }
    sizes = [shape.padded, *release.domain.shape[1:]]
    for axes, multiplier in zip(release.sets, release.multipliers, strict=True):
        parts = [kinds[axis] if axis in axes else np.ones((1, size)) for axis, size in enumerate(sizes)]
        found = parts[0]
        for part in parts[1:]:
            found = np.kron(found, part)
        rows.append(found * (multiplier / 2.0**release.bits))
    return np.concatenate(rows)


def padded(release: Marginals, query: Query) -> np.ndarray[Any, Any]:
    """The query on the padded cells: beyond the last level it goes on as it ends."""
    extra = release.long[0].shape.padded - release.domain.shape[0]
    tensor = query.vector().reshape(release.domain.shape)
    return np.concatenate([tensor, *[tensor[-1:]] * extra]).reshape(-1).astype(float)


@pytest.mark.parametrize("domain", [LINE, WIDE], ids=["alone", "with another attribute"])
def test_variances_are_those_of_least_squares_over_the_whole_strategy(domain: lp.Domain) -> None:
    release, asked = whole(domain), drawn_queries(domain, 12, 1)
    strategy = written(release)
    vectors = np.array([padded(release, query) for query in asked])
    inverse = np.linalg.pinv(strategy.T @ strategy, rcond=1e-12, hermitian=True)
    due = vectors @ inverse @ vectors.T
    belief = ProductBelief(release)
    assert belief.covariance(asked) == pytest.approx(due, rel=1e-6, abs=1e-6 * due.max())
    assert [belief.variance(query) for query in asked] == pytest.approx(due.diagonal().tolist(), rel=1e-6)


@pytest.mark.parametrize("domain", [LINE, WIDE], ids=["alone", "with another attribute"])
def test_without_noise_the_answers_are_exact(domain: lp.Domain) -> None:
    release, asked = whole(domain), drawn_queries(domain, 12, 2)
    counts = np.random.default_rng(3).integers(0, 50, domain.size)
    found, drawn = exact(release, counts)
    values = np.array([value / 2.0**release.bits for value in found])
    belief = ProductBelief(release)
    belief.learn(release, values[: release.draws])
    assert all(math.isnan(belief.estimate(query)[0]) for query in asked)  # nothing of them was drawn yet
    belief.learn(drawn, values[release.draws :])
    assert belief.undrawn(asked) == []
    answers = [belief.estimate(query)[0] for query in asked]
    assert answers == pytest.approx([float(query.vector() @ counts) for query in asked], rel=1e-7, abs=1e-4)


@pytest.mark.parametrize("domain", [LINE, WIDE], ids=["alone", "with another attribute"])
def test_no_record_changes_all_nodes_together_by_more_than_was_charged(domain: lp.Domain) -> None:
    release = whole(domain)
    charged = int(release.amounts().weights)
    assert charged <= Fraction(1, 20) * 2**MU_BITS
    most = Fraction(0)
    for cell in range(0, domain.size, 7):
        counts = np.zeros(domain.size, dtype=np.int64)
        counts[cell] = 1
        moved = sum(value * value for value in exact(release, counts)[0])
        most = max(most, Fraction(moved << MU_BITS, 4**release.bits))
    assert most <= charged
    assert most > Fraction(98, 100) * charged  # and it is no loose bound


def test_nodes_are_drawn_once_and_only_of_what_was_charged() -> None:
    release, once = whole(LINE), Once()
    parts = every_part(release)
    first, second = Drawn.of(release, parts[:3]), Drawn.of(release, parts[2:4])
    with pytest.raises(LedgerError, match="nothing was charged"):
        once.check(first)
    for measurement in (release, first):
        once.check(measurement)
        charge = CellCharge(measurement.amounts(), measurement.draws)
        once.record(Release(measurement, (0,) * measurement.draws, charge, 0, True))
    with pytest.raises(LedgerError, match="drawn before"):
        once.check(second)
    once.check(Drawn.of(release, parts[3:4]))
    with pytest.raises(LedgerError, match="was charged before"):
        once.check(whole(LINE))
    for wrong in ([((0,), (10**6,))], [((), ())], [((0,), (1, 2))], [], [parts[0], parts[0]]):
        with pytest.raises(DomainError):
            Drawn.of(release, wrong)
    assert int(first.amounts().weights) == 0


def test_what_is_drawn_reads_from_a_ledger_as_it_was_written() -> None:
    release = whole(WIDE)
    drawn = Drawn.of(release, every_part(release)[:5])
    again = read_measurement(write_measurement(release), WIDE)
    assert isinstance(again, Marginals)
    assert again.amounts() == release.amounts()
    assert again.draws == release.draws
    assert read_measurement(write_measurement(drawn), WIDE) == drawn


@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (0.5, False)])
def test_errors_have_the_stated_law(scale: float, passes: bool) -> None:
    """Mean squared standardised error of 6 queries in 400 releases; false alarms below 1e-6."""
    release, asked = whole(LINE), drawn_queries(LINE, 6, 5)
    counts = np.random.default_rng(6).integers(0, 50, LINE.size)
    found, drawn = exact(release, counts)
    joint, errors = ProductBelief(release).covariance(asked), []
    truth = np.array([query.vector() @ counts for query in asked], dtype=float)
    noise = SeededNoise(7)
    for _ in range(400):
        noisy = np.array([value / 2.0**52 for value in noise.gaussian(len(found))]) * scale
        values = np.array([value / 2.0**release.bits for value in found]) + noisy
        belief = ProductBelief(release)
        belief.learn(release, values[: release.draws])
        belief.learn(drawn, values[release.draws :])
        errors.append([belief.estimate(query)[0] for query in asked] - truth)
    whitened = np.linalg.solve(np.linalg.cholesky(joint), np.array(errors).T)
    mean = float((whitened**2).mean())  # of 2,400 squares of independent normals
    assert (abs(mean - 1) < 5.2 * math.sqrt(2 / whitened.size)) == passes


def test_trees_are_even_and_reach_every_level() -> None:
    for levels in (257, 500, 720, 1_000, 40_981, 65_536, 1_000_000, 2_000_000):
        branches = branches_of(levels)
        assert levels <= math.prod(branches) < 1.08 * levels
        assert max(branches) <= 64
        shape = shape_of(levels)
        assert shape.firsts[-1] <= math.prod(branches)
        cut = shape.cut(Runs(levels, np.array([0, levels // 3, levels // 2]), np.array([0, 1, 0])))
        assert len(cut) <= 2 * len(branches)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_long_labels_as_runs_say_the_same_as_written_out(data: st.DataObject) -> None:
    def drawn() -> tuple[Query, np.ndarray[Any, Any]]:
        cuts = sorted(data.draw(st.sets(st.integers(1, 4_999), max_size=5)))
        labels = np.searchsorted(cuts, np.arange(5_000), side="right") % 3
        weights = np.array(data.draw(st.lists(st.integers(-2, 3), min_size=9, max_size=9))).reshape(3, 3)
        return Query(FAR, {"x": labels, "y": [0, 1, 2]}, weights), weights[labels].reshape(-1)

    (one, mine), (other, theirs) = drawn(), drawn()
    assert LONG < 5_000
    assert all(isinstance(each, Runs) for axis, each in zip(one.axes, one.steps, strict=True) if axis == 0)
    assert np.array_equal(one.vector(), mine)
    assert np.array_equal(one.combine(other, np.subtract).vector(), mine - theirs)
    assert one.dot(other) == float(mine @ theirs)
    assert (one.combine(other, np.add).canonical() == one) == (not theirs.any())
    columns = distinct_columns([one, other])
    levels = {0: np.repeat(np.arange(5_000), 3), 1: np.tile(np.arange(3), 5_000)}
    located = columns.values[:, columns.locate(levels, 15_000)]
    assert np.array_equal(located, np.stack([mine, theirs]))


def test_a_hundred_ranges_of_two_million_levels_are_few_columns() -> None:
    domain, rng = lp.Domain(x=lp.Integers(1, 2_000_000)), np.random.default_rng(0)
    asked = [
        Query(domain, {"x": Runs(2_000_000, np.array([0, *ends]), np.array([0, 1, 0])).array()}, {0: 0, 1: 1})
        for ends in np.sort(rng.integers(1, 2_000_000, (100, 2))).tolist()
    ]
    assert len(distinct_columns(asked).values.T) <= 201


def test_pieces_leave_a_query_of_known_bounds() -> None:
    known = [ranged(LINE, 40, 120), ranged(LINE, 200, 260)]
    asked, bounds = ranged(LINE, 42, 202), bounds_of(known)
    assert bounds[0].tolist() == [0, 40, 120, 200, 260, 300]
    found = pieces(asked, bounds)
    assert len({row.key for row in found} | {asked.key}) == len(found) + 1
    for row in found:
        rest = asked.combine(row, np.subtract).canonical()
        starts = set(runs_of(rest.steps[0]).starts.tolist()) - {0}
        assert starts <= {42, 202, *bounds[0].tolist()}
    least = nearest(asked, bounds)
    assert np.flatnonzero(least.vector()).tolist() == [*range(40, 42), *range(200, 202)]
    assert alone(least) < alone(asked)
    assert nearest(known[0], bounds) is known[0]


def opened(path: Path, levels: int, predictions: Sequence[Query], release: str = "gaussian") -> lp.Session:
    domain = lp.Domain(x=lp.Integers(0, levels - 1))
    counts = np.random.default_rng(1).integers(0, 9, levels)
    return lp.open_session(
        MemoryTable(domain, counts.tolist()),
        domain,
        budget=lp.Budget(1, 1e-6),
        horizon=12,
        predictions=predictions,
        ledger=SQLLedger(path),
        noise=ExactNoise(),
        release=release,
    )


def test_a_session_on_a_line_replays_and_verifies(tmp_path: Path) -> None:
    asked, path = drawn_queries(LINE, 14, 8), tmp_path / "line.ledger"
    with opened(path, 300, asked[:4]) as session:
        plan = {one.query: one.std for one in session.plan().predicted}
        answers = [session.ask(query) for query in asked]
        assert [answers[i].std for i in range(1)] == pytest.approx(list(plan.values())[:1], rel=1e-9)
        remaining = session.remaining
    with opened(path, 300, asked[:4]) as session:
        assert [session.ask(query).value for query in asked] == [answer.value for answer in answers]
        assert session.remaining == remaining
    ledger = SQLLedger(path)
    assert verify(ledger) == []
    releases = [kept.entry for kept in ledger.since(0) if isinstance(kept.entry, Release)]
    ledger.close()
    parts = [part for one in releases if isinstance(one.measurement, Drawn) for part in one.measurement.parts]
    assert parts
    assert len(parts) == len(set(parts))
    assert all(not one.charge.units for one in releases if isinstance(one.measurement, Drawn))


@pytest.mark.parametrize(("release", "pure"), [("either", True), ("gaussian", False)])
def test_a_ledger_that_was_begun_over_cells_goes_on_so(
    release: str, pure: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    asked, path = drawn_queries(LINE, 6, 9), tmp_path / "cells.ledger"
    with monkeypatch.context() as earlier:
        earlier.setattr(primm_choice, "DENSE_CELLS", 1_024)
        with opened(path, 300, asked[:2], release) as session:
            answers = [session.ask(query).value for query in asked[:4]]
    with opened(path, 300, asked[:2], release) as session:
        assert [session.ask(query).value for query in asked[:4]] == answers
        assert isinstance(session._following.state.policy, PrimmDense)
        session.ask(asked[5])
        session.raise_budget(lp.Budget(2, 1e-6))
        assert session.ask(asked[4]).std > 0
    ledger = SQLLedger(path)
    first = ledger.since(0)[0].entry
    assert isinstance(first, Release)
    assert isinstance(first.charge, CellCharge)
    assert first.charge.pure == pure
    assert verify(ledger) == []
    ledger.close()


def test_lines_and_their_trees_are_named_by_what_they_are() -> None:
    line = whole(LINE).long[0]
    assert isinstance(line, StrategyTree)
    assert [matrix.sum(axis=1).any() for matrix in line.matrices] == [False, False]
    blocks = [size * b for size, b in zip(line.shape.sizes, line.shape.branches, strict=True)]
    nodes = itertools.accumulate(-(-300 // block) for block in blocks)
    assert line.shape.firsts.tolist() == [0, *nodes]
