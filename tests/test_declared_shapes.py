"""Declared shapes change what is designed for, and never what is answered."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from command import invoke
from hypothesis import given, settings

import laprasdp as lp
from laprasdp.config import read_config
from laprasdp.policy.catalog import policy_named
from laprasdp.policy.design import UNLIKELY
from laprasdp.policy.families import families
from laprasdp.policy.kinds import families_of, kind_shares, kinds_of_query
from laprasdp.policy.query_shapes import QueryShape, kept_shapes, shapes_of
from laprasdp.policy.rollout import play
from laprasdp.policy.setting import Setting
from laprasdp.privacy.gaussian import mean_absolute
from laprasdp.stream.plan import make_plan

BUDGET = lp.Budget(1, 1e-6)
SMALL = lp.Domain(n=lp.Integers(1, 12), c=lp.Categories(list("abcde")))
LARGE = lp.Domain(
    n=lp.Integers(1, 30),
    hour=lp.Integers(0, 23),
    c=lp.Categories([f"c{i}" for i in range(10)]),
    yes=lp.Booleans(),
)
TEXTS = {
    "ranges of one attribute": "ranges of one attribute",
    "Ranges  of 1": "ranges of one attribute",
    "values of two attributes": "values of two attributes",
    "conjunctions of up to 3": "conjunctions of up to three attributes",
    "conjunctions of up to 1": "conjunctions of one attribute",
    "group-by of 1 or 2": "group-by of up to two attributes",
    "group-by of one or three attributes": "group-by of one or three attributes",
    "sets of c": "sets of c",
    "values of hour and c": "values of hour and c",
}
ONE = "a range of one attribute"


@pytest.mark.parametrize(("text", "canonical"), TEXTS.items())
def test_a_text_names_one_shape(text: str, canonical: str) -> None:
    shape = QueryShape.read(text)
    assert str(shape) == canonical
    assert QueryShape.read(canonical) == shape
    assert shape.sets(LARGE)


@pytest.mark.parametrize(
    ("wrong", "message"),
    {
        "rangs of one attribute": 'write "ranges of"',
        "ranges": 'write "ranges of"',
        "ranges of four attributes": "no attribute four attributes; there are n, hour, c, yes",
        "ranges of m": "no attribute m; there are n, hour, c, yes",
        "ranges of c": "c has no order; its values",
        "sets of yes": "yes has fewer than 4 levels",
        "ranges of three attributes": "n, hour can be asked for so, which is too few",
        "values of n and n": "each named once",
        "values of n and hour and c and yes": "up to three attributes",
    }.items(),
)
def test_what_is_none_is_refused_by_a_line_that_says_what_may_be(wrong: str, message: str) -> None:
    with pytest.raises(lp.ConfigError, match=message) as refusal:
        Setting(LARGE, BUDGET, 10, shapes=[wrong])
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("wrong", ["ranges of n", 3, {"ranges of n": 0}, {"ranges of n": True}, [3], {3: 1}])
def test_shapes_are_a_list_or_have_shares(wrong: Any) -> None:
    with pytest.raises(lp.ConfigError, match="shapes must be a list of shapes, or a mapping"):
        lp.Stream(shapes=wrong)


@given(
    st.dictionaries(
        st.sampled_from([one for one in TEXTS if one not in ("Ranges  of 1", "conjunctions of up to 1")]),
        st.floats(1e-3, 1e3),
        min_size=1,
    )
)
def test_shares_are_kept_to_the_last_bit_in_any_order(given_shares: dict[str, float]) -> None:
    found = shapes_of(given_shares)
    assert math.fsum(one.share for one in found) == pytest.approx(1)
    assert shapes_of(found) == found
    assert shapes_of(json.loads(json.dumps(kept_shapes(found)))) == found
    assert shapes_of(dict(reversed(given_shares.items()))) == found
    assert math.fsum(kind_shares(LARGE, found).values()) == pytest.approx(1)


def test_kinds_are_of_the_shape_that_is_declared() -> None:
    shapes = shapes_of(["ranges of n", "group-by of two attributes", "sets of c", "conjunctions of up to 2"])
    rng = np.random.default_rng(0)
    found = kinds_of_query(LARGE, (), 12, rng, shapes=shapes, others=False)
    assert set(found) == set(kind_shares(LARGE, shapes))
    axes = {kind: {query.axes for query in queries} for kind, queries in found.items()}
    assert axes["a range of n"] == {(0,)}
    assert axes["half of the values of c"] == {(2,)}
    assert axes["a group of two attributes"] >= {(0, 1), (2, 3)}
    assert {len(one) for one in axes["conditions on two attributes"]} == {2}
    for query in found["a range of n"]:
        assert np.abs(np.diff(query.weights[query.labels[0]], prepend=0, append=0)).sum() == 2
    assert families_of(LARGE, shapes, 0) == pytest.approx(
        {"range": 0.25 + 0.25 * (1 / 4 + 3 / 6) / 2, "point": 0.25 / 2}
    )


def test_moments_of_a_shape_are_those_of_all_its_queries() -> None:
    """Against every conjunction of ranges of n and values of c, written out; another shape is far from it."""
    ranges = [
        ((np.arange(12) >= low) & (np.arange(12) < high)).astype(float)
        for low, high in itertools.combinations(range(13), 2)
    ]
    every, values = np.ones(12), list(np.eye(5))
    sides = [(ranges, [np.ones(5)]), ([every], values), (ranges, values)]
    one, other, both = (
        np.mean([np.outer(v, v) for v in (np.kron(n, c) for n in left for c in right)], axis=0)
        for left, right in sides
    )
    shapes = shapes_of(["conjunctions of up to two attributes", "sets of n"])
    found = [family for family in families(SMALL, shapes) if family.declared]
    assert np.abs(found[0].moment - ((one + other) / 2 + both) / 2).max() < 1e-12
    assert np.abs(found[1].moment - found[0].moment).max() > 0.05
    assert sum(family.share for family in families(SMALL, shapes)) == pytest.approx(1)


CASES = [
    (SMALL, "either", "ranges of one attribute", ONE),
    (SMALL, "gaussian", "values of two attributes", "one value of two attributes"),
    (LARGE, "either", "ranges of one attribute", ONE),
    (LARGE, "either", "values of one attribute", "one value of one attribute"),
    (LARGE, "either", "group-by of one attribute", "one value of one attribute"),
]


@pytest.mark.parametrize(("domain", "release", "shape", "kind"), CASES)
def test_what_is_declared_gains_and_nothing_else_loses_without_bound(
    domain: lp.Domain, release: str, shape: str, kind: str
) -> None:
    plain, shaped = (
        policy_named("primm", Setting(domain, BUDGET, 100, release=release, shapes=shapes))
        for shapes in ([], [shape])
    )
    kinds = kinds_of_query(domain, (), 20, np.random.default_rng(7))
    before, after = (
        {one.kind: one.mae for one in make_plan(policy, kinds=kinds).kinds} for policy in (plain, shaped)
    )
    assert after[kind] < 0.97 * before[kind]
    independent = mean_absolute(math.sqrt(100) / BUDGET.mu)
    assert max(after.values()) < 1.1 * UNLIKELY * independent


QUERIES = [
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) FROM t WHERE n < 5",
    "SELECT COUNT(*) FROM t WHERE n BETWEEN 3 AND 9 AND c = 'b'",
    "SELECT c, COUNT(*) FROM t GROUP BY c",
    "SELECT COUNT(*) FROM t WHERE c IN ('a', 'c') OR n = 7",
    "SELECT SUM(n) FROM t WHERE c <> 'a'",
    "SELECT n, c, COUNT(*) FROM t GROUP BY n, c",
]
WRONG = ["sets of c", "values of two attributes", "group-by of c", "ranges of n", "conjunctions of up to 2"]


@settings(max_examples=8)
@given(
    st.lists(st.sampled_from(WRONG), min_size=1, unique=True),
    st.lists(st.sampled_from(QUERIES), min_size=1, max_size=8),
    st.sampled_from(["either", "gaussian"]),
    st.sampled_from([SMALL, LARGE]),
)
def test_what_is_declared_never_decides_what_is_answered(
    shapes: list[str], asked: list[str], release: str, domain: lp.Domain
) -> None:
    table = pd.DataFrame({"n": [1, 5, 5], "c": ["a", "b", "c"], "hour": 3, "yes": True})
    if domain is LARGE:
        table["c"] = "c1"
        asked = [text.replace("'a'", "'c0'").replace("'b'", "'c1'").replace("'c'", "'c2'") for text in asked]
    found = []
    for declared in ([], shapes):
        session = lp.open_session(
            table, domain, budget=BUDGET, horizon=8, shapes=declared, release=release, name="t", public=True,
            noise=lp.SeededNoise(1),
        )  # fmt: skip
        answers = [session.ask(text) for text in asked]
        found.append([[row.group for row in one] if isinstance(one, list) else None for one in answers])
    assert found[0] == found[1]


def test_a_ledger_goes_on_with_the_same_shapes_alone(tmp_path: Path) -> None:
    table = pd.DataFrame({"n": [1, 5, 5], "c": ["a", "b", "c"]})

    def opened(**more: Any) -> lp.Session:
        return lp.open_session(
            table, SMALL, budget=BUDGET, ledger=tmp_path / "l", name="t", public=True, **more
        )

    with opened(shapes=["values of c", "ranges of n"]) as session:
        first = session.ask("SELECT COUNT(*) FROM t WHERE n < 5")
    with opened(shapes={"ranges of n": 3, "values of c": 3}) as session:
        assert session.ask("SELECT COUNT(*) FROM t WHERE n < 5").value == first.value
    for other in ([], ["ranges of n"], {"ranges of n": 2, "values of c": 1}):
        with pytest.raises(lp.LedgerError, match="begun with other settings: shapes"):
            opened(shapes=other)


def test_a_ledger_from_before_shapes_has_none(tmp_path: Path) -> None:
    assert "shapes" not in Setting(SMALL, BUDGET, 10).settings()
    kept = Setting(SMALL, BUDGET, 10, shapes=["ranges of n"]).settings()
    assert json.loads(json.dumps(kept)) == kept
    assert kept["shapes"] == {"ranges of n": 1.0}


TOML = """
[source]
file = "t.csv"
public = true
[privacy]
epsilon = 1
delta = 1e-6
unit = "row"
[stream]
horizon = 30
shapes = {}
[domain.n]
type = "integers"
min = 1
max = 9
[domain.hour]
type = "integers"
min = 0
max = 5
"""


@pytest.mark.parametrize("text", ['["ranges of one attribute"]', '{ "ranges of one attribute" = 1 }'])
def test_the_file_and_the_plan_say_what_is_declared(text: str, tmp_path: Path) -> None:
    path = tmp_path / "lapras.toml"
    path.write_text(TOML.replace("{}", text))
    assert read_config(path).stream == lp.Stream(30, shapes=["ranges of one attribute"])
    said = invoke("plan", "--config", path).stdout
    assert "without shapes" in said
    assert "100%" in next(line for line in said.splitlines() if ONE in line)
    row = json.loads(invoke("plan", "--json", "--config", path).stdout)
    assert row["shapes"] == {ONE: 1.0}
    before = {kind["kind"]: kind["mae"] for kind in row["without_shapes"]["kinds"]}
    assert next(kind["mae"] for kind in row["kinds"] if kind["kind"] == ONE) < before[ONE]
    path.write_text(TOML.replace("{}", '"ranges of n"'))
    with pytest.raises(lp.ConfigError, match="a list of shapes, or shapes with the share of each"):
        read_config(path)


def test_predictions_do_not_hurt_what_is_declared() -> None:
    predicted = tuple(kinds_of_query(LARGE, (), 8, np.random.default_rng(3))["one value of two attributes"])
    alone, beside = (
        policy_named("primm", Setting(LARGE, BUDGET, 100, one, shapes=["ranges of one attribute"]))
        for one in ((), predicted)
    )
    asked = kinds_of_query(LARGE, (), 20, np.random.default_rng(4))[ONE]
    before, after = (
        np.mean([math.sqrt(one or math.inf) for one in play(policy, asked)]) for policy in (alone, beside)
    )
    assert after < 1.3 * before
