"""What declared shapes are worth on brushes of real users, and what a wrong one costs: expected errors."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from experiments.brush import brushes
from experiments.study import TABLE, log_of
from laprasdp import Answer, Budget, Domain, Query, SeededNoise, open_session
from laprasdp.predict.logged_shapes import logged_shapes
from laprasdp.predict.template import Key
from laprasdp.sql.reader import Reader
from laprasdp.stream.answer import expected_error

RIGHT = "ranges of one attribute"
TWO = "ranges of two attributes"
WRONG = (
    "values of one attribute",
    TWO,
    "group-by of one or two attributes",
    "conjunctions of up to three attributes",
)
BUDGET = Budget(1.0, 1e-6)

Shapes = Sequence[str] | Mapping[str, float]


def error(domain: Domain, stream: Sequence[Query], horizon: int, shapes: Shapes, release: str) -> float:
    """The mean expected error of a stream; it is known without data, so the table is empty."""
    empty = pa.table({name: pa.array([], pa.float64()) for name in domain.names})
    session = open_session(
        empty,
        domain,
        budget=BUDGET,
        horizon=horizon,
        shapes=shapes,
        release=release,
        name=TABLE,
        public=True,
        noise=SeededNoise(0),
    )
    errors = []
    for query in stream:
        shown = session.ask(query)
        assert isinstance(shown, Answer)
        errors.append(expected_error(shown.std, shown.law, shown.parts))
    return float(np.mean(errors))


def together(stream: Sequence[Query]) -> list[Query]:
    """Each brush, and the last brush of another view: both conditions."""
    latest, found = dict[tuple[int, ...], Query](), list[Query]()
    for query in stream:
        others = [one for axes, one in latest.items() if axes != query.axes]
        if query.axes:
            latest.pop(query.axes, None)
            latest[query.axes] = query
            if others:
                found.append(query.combine(others[-1], np.multiply).canonical())
    return found


def main() -> int:
    """Print the median and the mean over users for each declaration, a JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the traces")
    parser.add_argument("--table", default="flights", choices=("flights", "movies", "weather"))
    parser.add_argument("--horizon", type=int, default=100)
    parser.add_argument("--two", action="store_true", help="conditions of two views at a time")
    parser.add_argument("--views", type=int, help="the first views only; few make a table of few cells")
    parser.add_argument("--release", default="gaussian", choices=("gaussian", "either"))
    given = parser.parse_args()
    domain, users = brushes(given.data, given.table)
    if given.views:
        kept = domain.names[: given.views]
        domain = Domain({name: domain[name] for name in kept})
        users = {
            user: [(task, key) for task, key in own if any(f" {name} " in key.text for name in kept)]
            for user, own in users.items()
        }
    rows: dict[str, list[float]] = {}
    for user, own in users.items():
        if len(own) < given.horizon // 2:
            continue
        others = {name: [key for _, key in lines] for name, lines in users.items() if name != user and lines}
        stream = _queries(domain, [key for _, key in own])
        stream = (together(stream) if given.two else stream)[: given.horizon]
        declared: dict[str, Shapes] = {"none": (), RIGHT: [RIGHT], **{one: [one] for one in WRONG}}
        if not given.two:
            declared["learned"] = logged_shapes(log_of(domain, others), given.horizon)
        for name, shapes in declared.items():
            rows.setdefault(name, []).append(error(domain, stream, given.horizon, shapes, given.release))
    for name, errors in rows.items():
        row = {"table": given.table, "S": given.horizon, "declared": name, "users": len(errors)}
        print(
            json.dumps(
                row | {"median": round(float(np.median(errors)), 2), "mean": round(float(np.mean(errors)), 2)}
            ),
            flush=True,
        )
    return 0


def _queries(domain: Domain, keys: Sequence[Key]) -> list[Query]:
    reader = Reader(domain, TABLE)
    return [reader.parse(key.text).queries[0] for key in keys]


if __name__ == "__main__":
    raise SystemExit(main())
