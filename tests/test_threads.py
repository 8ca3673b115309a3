"""Small matrices meet one BLAS thread: no call of linear algebra escapes the doors in any policy's life."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.linalg
from threadpoolctl import ThreadpoolController

import laprasdp as lp
from laprasdp.ledger.sql import SQLLedger
from laprasdp.ledger.verify import verify
from laprasdp.policy.design import design
from laprasdp.policy.families import Predicted
from laprasdp.strategy import joint
from laprasdp.strategy.threads import FEW, blas_threads, one_thread
from laprasdp.stream.audit import audit

SOURCE = Path(lp.__file__).parent
SMALL = lp.Domain(age=lp.Integers(0, 39), sex=lp.Booleans())
WIDE = lp.Domain(age=lp.Integers(0, 39), z=lp.Integers(0, 39), sex=lp.Booleans())
LONG = lp.Domain(age=lp.Integers(0, 999))
COUNT = "SELECT COUNT(*) FROM t"
PREDICTED = [f"{COUNT} WHERE age > {n}" for n in range(5, 30, 5)]
BLAS = ThreadpoolController().select(user_api="blas")
UNSEEN = {
    "belief/measure.py": "cells that may not be charged at all and matter all the same are rare",
    "strategy/product_rows.py": "factors that do not begin with a row for each level are no design's",
}
"""Modules whose calls the lives below do not reach, and why."""


def threads() -> int:
    return max(library.get_num_threads() for library in BLAS.lib_controllers)


@pytest.fixture
def two() -> Iterator[None]:
    """A process that has two threads, whatever the machine has."""
    with BLAS.limit(limits=2):
        assert threads() == 2
        yield


def calls() -> set[str]:
    """Modules of the package that call numpy.linalg or scipy.linalg."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(
                ("np.linalg.", "scipy.linalg.")
            ):
                found.add(path.relative_to(SOURCE).as_posix())
    return found


class Watch:
    """Wraps every function of numpy.linalg and scipy.linalg, and keeps who calls it with how many threads."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seen: set[str] = set()
        self.escaped: set[str] = set()
        for module in (np.linalg, scipy.linalg):
            for name in module.__all__:
                if inspect.isroutine(getattr(module, name)):
                    patch.setattr(module, name, self.watched(getattr(module, name)))

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*given: Any, **more: Any) -> Any:
            frame = sys._getframe(1)
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE):
                where = path.relative_to(SOURCE).as_posix()
                self.seen.add(where)
                sizes = [min(each.shape) for each in given if isinstance(each, np.ndarray) and each.ndim == 2]
                if sizes and min(sizes) < FEW and threads() > 1:
                    self.escaped.add(f"{where}:{frame.f_lineno}")
            return function(*given, **more)

        return call


def table(domain: lp.Domain) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {"age": rng.integers(0, 40, 500)}
        | ({"sex": rng.integers(0, 2, 500) > 0} if "sex" in domain.names else {})
        | ({"z": rng.integers(0, 40, 500)} if "z" in domain.names else {})
    )


def life(folder: Path, policy: str, domain: lp.Domain, **more: Any) -> None:
    """Opened, planned, priced, asked, raised, opened again and verified."""
    for round_ in (1, 2):
        with lp.open_session(
            table(domain),
            domain,
            budget=lp.Budget(1.0 if round_ == 1 else 1.5, 1e-3),
            horizon=8,
            policy=policy,
            name="t",
            ledger=folder / "ledger",
            **more,
        ) as session:
            session.plan()
            wide = "sex" in domain.names
            for text in (
                f"{COUNT} WHERE age < {10 + round_}",
                f"{COUNT} WHERE {'sex AND' * wide} age < {20 + round_}",
                f"{COUNT} WHERE age > {round_} {'GROUP BY sex' * wide}",
                f"SELECT SQRT(COUNT(*)) FROM t WHERE age < {30 + round_}",
                PREDICTED[round_],
            ):
                try:
                    session.price(text)
                    answer = session.ask(text)
                except lp.BudgetExhausted:
                    continue
                if isinstance(answer, lp.GroupedAnswer):
                    answer.consistent()
            if round_ == 1:
                session.raise_budget(lp.Budget(1.5, 1e-3))
    assert verify(SQLLedger(folder / "ledger")) == []


LIVES: list[tuple[str, lp.Domain, dict[str, Any]]] = [
    ("primm", SMALL, {"predictions": PREDICTED, "post": "fitted"}),
    ("primm", SMALL, {"predictions": PREDICTED, "release": "gaussian", "post": "fitted"}),
    ("primm", WIDE, {"predictions": PREDICTED, "post": "fitted"}),
    ("primm", WIDE, {}),
    ("primm", LONG, {"predictions": PREDICTED}),
    ("smooth-cache", WIDE, {"predictions": PREDICTED}),
    ("offline", SMALL, {"predictions": PREDICTED}),
]


def test_every_call_meets_one_thread(tmp_path: Path, two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    for place, (policy, domain, more) in enumerate(LIVES):
        folder = tmp_path / str(place)
        folder.mkdir()
        life(folder, policy, domain, **more)
    (tmp_path / "searched").mkdir()
    monkeypatch.setattr(joint, "FEW_COLUMNS", 4)  # as where the predictions tell too many columns apart
    life(tmp_path / "searched", "smooth", WIDE, predictions=PREDICTED)
    assert watch.escaped == set()
    assert threads() == 2
    assert calls() - watch.seen - {"stream/audit.py"} <= UNSEEN.keys()
    np.linalg.inv(np.eye(3))  # a call from elsewhere is nobody's concern
    assert watch.escaped == set()


def test_a_call_outside_every_door_is_found(two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    design(SMALL, Predicted(np.eye(80)[:5], np.full(5, 0.2)), 10, None)
    assert {where.split(":")[0] for where in watch.escaped} == {"policy/design.py"}


def test_large_matrices_get_all_threads_back(two: None) -> None:
    with one_thread():
        assert threads() == 1
        with blas_threads(FEW - 1):
            assert threads() == 1
        with blas_threads(FEW):
            assert threads() == 2
        assert threads() == 1
    assert threads() == 2
    with blas_threads(FEW):
        assert threads() == 2


def test_whoever_leaves_last_all_threads_are_back(two: None) -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert inside.wait(10)
        assert threads() == 1
    leave.set()
    thread.join()
    assert threads() == 2


def test_an_error_inside_leaves_no_limit(two: None) -> None:
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert threads() == 2


def test_an_audit_is_a_door() -> None:
    assert hasattr(audit, "__wrapped__")
