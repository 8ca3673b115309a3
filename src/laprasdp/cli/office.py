"""An office that asks about US flights: a made-up log of its questions, and the stream of the week after."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from laprasdp.cli.scene import HORIZON, Scene
from laprasdp.predict.forecast import Forecast, make_forecast
from laprasdp.predict.log import read_log
from laprasdp.predict.mixture import Mixture
from laprasdp.queries.attribute import Bins, Categories
from laprasdp.queries.domain import Domain

WEEKS, A_DAY = 4, 40
HABITS, HABITUAL = 60, 0.75
CARRIERS = ("AA", "WN", "DL", "UA", "OO", "EV", "US", "B6", "MQ", "AS", "NK", "F9", "HA", "VX")
STATES = (
    "CA", "TX", "FL", "NY", "IL", "GA", "CO", "NC", "VA", "AZ", "WA", "NV", "MI", "PA", "MA", "NJ", "MN",
    "TN", "MO", "UT", "OR", "MD", "HI", "OH", "LA", "AK", "PR", "KY", "IN", "WI", "OK", "CT", "SC", "AL",
    "NM", "AR", "ID", "NE", "IA", "KS", "VI", "MT", "MS", "ND", "RI", "SD", "ME", "NH", "GU", "WY", "VT",
    "WV", "DE", "AS",
)  # fmt: skip
LATE = (15, 30, 45, 60, 90, 120, 180)
DOMAIN = Domain(
    UNIQUE_CARRIER=Categories(sorted(CARRIERS)),
    ORIGIN_STATE_ABR=Categories(sorted(STATES)),
    ARR_DELAY=Bins(
        [-1440, -60, -30, -15, 0, 5, 10, 15, 30, 45, 60, 90, 120, 180, 240, 480, 2880],
        whole=True,
        nullable=True,
    ),
    DISTANCE=Bins(start=0, stop=5200, width=200, whole=True),
)
"""Four attributes of the packaged flights, 334,152 cells."""


class Office:
    """
    People who ask about carriers, states, delays and distances; who they are, `seed` says.

    Each question has one of seven shapes, with carriers and states drawn from a list of usual ones (large
    ones more often).  Sixty questions are habits; the k-th of them is asked in proportion to k^-0.8.  Three
    of four questions are habits, the others are drawn anew.  The table is never looked at.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._habits = [self._new() for _ in range(HABITS)]
        shares = np.arange(1, HABITS + 1) ** -0.8
        self._shares = shares / shares.sum()

    def ask(self) -> str:
        """The next question."""
        if self._rng.random() < HABITUAL:
            return self._habits[self._rng.choice(HABITS, p=self._shares)]
        return self._new()

    def _new(self) -> str:
        carrier = f"UNIQUE_CARRIER = '{self._usual(CARRIERS)}'"
        state = f"ORIGIN_STATE_ABR = '{self._usual(STATES[:27])}'"
        late = f"ARR_DELAY >= {self._rng.choice(LATE)}"
        far = int(self._rng.integers(1, 16)) * 200
        shapes = (
            late,
            f"{carrier} AND {late}",
            state,
            f"{carrier} AND {state}",
            f"{state} AND {late}",
            f"DISTANCE < {far} AND {late}",
            f"{carrier} AND DISTANCE >= {far}",
        )
        return f"SELECT COUNT(*) FROM flights WHERE {shapes[self._rng.integers(len(shapes))]}"

    def _usual(self, names: Sequence[str]) -> str:
        return names[min(int(self._rng.exponential(len(names) / 3)), len(names) - 1)]


def office(seed: int) -> Scene:
    """Four weeks of an office's questions, what is learned from them, and the hundred that follow."""
    people = Office(seed)
    log = [people.ask() for _ in range(5 * WEEKS * A_DAY)]
    forecast = learned(log)
    known = {one.text for one in forecast.predictions}
    stream = [(text, text in known) for text in (people.ask() for _ in range(HORIZON))]
    foretold = f"{forecast.overlap:.0%} of the next {HORIZON} questions are expected to be among them."
    about = (
        f"An office asked {len(log)} questions in {WEEKS} weeks (a made-up log). "
        f"{len(known)} predictions are learned from it;\n{foretold}"
    )
    return Scene("flights", DOMAIN, "flights", about, forecast.predictions, forecast.overlap, stream)


def learned(log: Sequence[str]) -> Forecast:
    """The forecast of a log: 40 questions each working day from nine o'clock on, read from a file."""
    monday, a_while = datetime.datetime(2014, 12, 1, 9), datetime.timedelta(minutes=12)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["time", "query"])
            for place, text in enumerate(log):
                day, number = divmod(place, A_DAY)
                at = monday + datetime.timedelta(days=day + 2 * (day // 5)) + number * a_while
                rows.writerow([at.isoformat(), text])
        lines = read_log(path, DOMAIN, "flights", provenance="public")
    predictor = Mixture(HORIZON)
    predictor.fit(lines)
    return make_forecast(predictor, lines, HORIZON, HORIZON)
