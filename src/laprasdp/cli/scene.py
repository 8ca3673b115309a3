"""What a demo is about: a public table, the statements that are expected of it, and the stream that comes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from laprasdp.privacy.budget import Budget
from laprasdp.queries.attribute import Integers
from laprasdp.queries.domain import Domain
from laprasdp.queries.prediction import Prediction

BUDGET = Budget(epsilon=1.0, delta=1e-6)
HORIZON = 100
AGE = Integers(17, 90)
COUNT = "SELECT COUNT(*) FROM adult WHERE "
PREDICTIONS, PREDICTED = 100, 80


@dataclass(frozen=True)
class Scene:
    """
    The table, the predictions and the stream of one demo.

    Attributes
    ----------
    table : str
        Name of the packaged table, as in FROM.
    domain : Domain
    rows : str
        What one row of the table is, in the plural.
    about : str
        Two or three sentences for the reader.
    predictions : sequence of str or Prediction
    overlap : float or None
        Share of the stream that is expected to be predicted; None where nothing foretells it.
    stream : sequence of (str, bool)
        The statements as they come, each with whether it was predicted.
    """

    table: str
    domain: Domain
    rows: str
    about: str
    predictions: Sequence[str | Prediction]
    overlap: float | None
    stream: Sequence[tuple[str, bool]]

    @property
    def predicted_share(self) -> float:
        """Share of the stream that was predicted."""
        return sum(predicted for _, predicted in self.stream) / len(self.stream)

    def brief(self, text: str) -> str:
        """A statement without what all statements of the demo share."""
        condition = text.removeprefix(f"SELECT COUNT(*) FROM {self.table} WHERE ")
        ages = re.findall(r"\d+", condition)
        return f"any of {len(ages)} ages: {', '.join(ages)}" if condition.startswith("age IN") else condition


def census(seed: int) -> Scene:
    """The workload of the paper's appendix on the ages of UCI Adult, drawn without looking at any data."""
    predictions, stream = draw_stream(seed)
    about = (
        f"{PREDICTIONS} random ranges of ages are predicted. {PREDICTED} of the {HORIZON} statements are\n"
        "among them, the others are arbitrary sets of ages: the workload of the paper's appendix."
    )
    return Scene("adult", Domain(age=AGE), "people", about, predictions, None, stream)


def draw_stream(seed: int) -> tuple[list[str], list[tuple[str, bool]]]:
    """
    The statements of `census`.

    Parameters
    ----------
    seed : int

    Returns
    -------
    predictions : list of str
        Distinct random ranges, uniform over all contiguous ranges of ages.
    stream : list of (str, bool)
        80 statements from the predictions and 20 that nobody predicted, each age in them with probability
        1/2; in random order, each with whether it was predicted.
    """
    rng = np.random.default_rng(seed)
    ages = range(AGE.min, AGE.max + 1)
    ranges = [(low, high) for low in ages for high in ages if low <= high]
    chosen = rng.choice(len(ranges), PREDICTIONS, replace=False)
    predictions = ["{}age BETWEEN {} AND {}".format(COUNT, *ranges[i]) for i in chosen]
    stream = [(predictions[i], True) for i in rng.choice(PREDICTIONS, PREDICTED, replace=False)]
    for _ in range(HORIZON - PREDICTED):
        named = [str(age) for age, flag in zip(ages, rng.random(len(ages)) < 0.5, strict=True) if flag]
        stream.append((f"{COUNT}age IN ({', '.join(named or [str(AGE.min)])})", False))
    return predictions, [stream[i] for i in rng.permutation(HORIZON)]
