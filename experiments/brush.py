"""Brushes of real users as counting queries, and how much of a user who was left out predictions hold."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.data import Data
from experiments.study import TABLE, Study, leave_out, log_of
from laprasdp import Bins, Domain
from laprasdp.datasets import path
from laprasdp.predict.frequency import Frequency
from laprasdp.predict.log import Log
from laprasdp.predict.mixture import Mixture
from laprasdp.predict.model import Context, Predictor
from laprasdp.predict.template import Key, Splitter

SIZES = (50, 100, 200, 500)
FIRST = 500


def brushes(folder: Path, name: str) -> tuple[Domain, dict[str, list[tuple[str, Key]]]]:
    """
    The domain of the views of one table, and for each user the task and the query of each brush, in order.

    A brush is widened to the bins it touches, at least one; one that moves inside its bins asks nothing new
    and is dropped.
    """
    setup = json.loads((folder / "crossfilter_setup.json").read_text())[name]
    views = {view["name"]: view["binning"][0] for view in setup}
    traces = pd.read_parquet(folder / "crossfilter_traces.parquet")
    traces = traces[traces.dataset == name].astype({"dimension": str, "user": str, "task": str})
    width = traces.dimension.map(lambda view: views[view]["width"]).astype(float)
    start = traces.dimension.map(lambda view: views[view]["reference"]).astype(float)
    traces["low"] = np.floor((traces.lo - start) / width).astype(int)
    traces["high"] = np.maximum(np.ceil((traces.hi - start) / width).astype(int), traces.low + 1)
    tops = traces.groupby("dimension").high.max()
    edges = {
        view: [binning["reference"] + i * binning["width"] for i in range(int(tops[view]) + 1)]
        for view, binning in views.items()
        if view in tops
    }
    domain = Domain({view: Bins(values) for view, values in edges.items()})
    splitter, users = Splitter(), dict[str, list[tuple[str, Key]]]()
    for user, own in traces.groupby("user", sort=True):
        users[user] = []
        for task, lines in own.groupby("task", sort=False):
            last = None
            for view, low, high in zip(lines.dimension, lines.low, lines.high, strict=True):
                first, end = edges[view][low], edges[view][high]
                text = f"SELECT COUNT(*) FROM {TABLE} WHERE {view} >= {first} AND {view} < {end}"
                if text != last:
                    users[user].append((task, splitter.split(text)))
                last = text
    return domain, users


def study(data: Data, place: int, horizon: int) -> Study:
    """The first brushes of the `place`-th user of the flights, learned from the ten others."""
    data.file("workloads/crossfilter_traces.parquet")
    domain, users = brushes(data.file("workloads"), "flights")
    streams = {user: tuple(key for _, key in own) for user, own in users.items()}
    user = list(streams)[place]
    trained = [other for other in streams if other != user]
    return leave_out(user, flights(), domain, streams, horizon, trained)


def flights() -> pd.DataFrame:
    """The real table, times of day as hours, as the views of the study showed them."""
    table = pd.read_parquet(path("flights"))
    for column in ("ARR_TIME", "DEP_TIME"):
        table[column] = table[column] // 100 % 24
    return table


def hits(
    choose: Callable[[tuple[Key, ...], int], list[Key]], stream: list[Key], every: int
) -> dict[int, float]:
    """Share of the stream that is in P, which is chosen again after each `every` statements."""
    found: Counter[int] = Counter()
    for begin in range(0, len(stream), every):
        following = stream[begin : begin + every]
        ranked = choose(tuple(stream[:begin]), every)
        for size in SIZES:
            chosen = set(ranked[:size])
            found[size] += sum(key in chosen for key in following)
    return {size: found[size] / len(stream) for size in SIZES}


def learned(predictor: Predictor, log: Log) -> Callable[[tuple[Key, ...], int], list[Key]]:
    """P as a predictor chooses it, after it has seen the session so far."""

    def choose(session: tuple[Key, ...], horizon: int) -> list[Key]:
        spread = predictor.expected_counts(horizon, Context(session=session))
        return [key for key, _ in spread.ranked(log, SIZES[-1])]

    return choose


def latest(predictor: Predictor, log: Log) -> Callable[[tuple[Key, ...], int], list[Key]]:
    """P is what the session asked, the latest first, then what is frequent."""
    frequent = learned(predictor, log)((), FIRST)
    return lambda session, horizon: list(dict.fromkeys([*reversed(session), *frequent]))


def main() -> int:
    """Print the mean hit rates, and their standard errors over users, of each way to choose P."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the traces")
    parser.add_argument("--table", default="flights", choices=("flights", "movies", "weather"))
    parser.add_argument("--every", type=int, default=25, help="statements between two choices of P")
    given = parser.parse_args()
    domain, users = brushes(given.data, given.table)
    rows: dict[str, list[dict[int, float]]] = {}
    for user, own in users.items():
        others = {name: [key for _, key in lines] for name, lines in users.items() if name != user}
        log = log_of(domain, others)
        stream = [key for _, key in own][:FIRST]
        for name, predictor, choose, every in (
            ("frequency", Frequency(), learned, FIRST),
            ("mixture", Mixture(FIRST), learned, FIRST),
            ("latest, then frequency, chosen again", Frequency(), latest, given.every),
            ("mixture, chosen again", Mixture(given.every), learned, given.every),
        ):
            predictor.fit(log)
            rows.setdefault(name, []).append(hits(choose(predictor, log), stream, every))
    base = np.array([[one[size] for size in SIZES] for one in rows["frequency"]])
    for name, found in rows.items():
        rates = np.array([[one[size] for size in SIZES] for one in found])
        error = (rates - base).std(axis=0, ddof=1) / np.sqrt(len(rates))
        row = {"predictor": name, "hit_rate": rates.mean(axis=0).round(4).tolist()}
        print(
            json.dumps(
                row
                | {"gain": (rates - base).mean(axis=0).round(4).tolist(), "gain_se": error.round(4).tolist()}
            )
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
