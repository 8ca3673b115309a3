"""Logs with a known truth, for the tests of predictors."""

from __future__ import annotations

import numpy as np

from laprasdp import Bins, Categories, Dates, Domain, Integers
from laprasdp.predict.log import Log
from laprasdp.predict.template import Splitter

DOMAIN = Domain(
    a=Integers(0, 99),
    b=Bins(range(-20, 100, 5)),
    s=Categories([f"x{i}" for i in range(20)]),
    d=Dates("2024-01-01", "2024-12-31"),
)
START = 1_704_067_200.0  # 2024-01-01, a Monday
HOUR, DAY = 3600.0, 86400.0


def made(texts, times=None, sessions=None, domain=DOMAIN):
    """A log of statements that can all be asked, in the order given."""
    splitter, numbers = Splitter(), {}
    ids = [numbers.setdefault(splitter.split(text), len(numbers)) for text in texts]
    return Log(
        domain,
        "t",
        tuple(numbers),
        np.array(ids, dtype=np.int32),
        None if times is None else np.array(times, dtype=float),
        np.array(sessions or [0] * len(ids), dtype=np.int32),
    )


def ranges(count, first=0):
    """Different ranges of a, each for one category; at most 1,800 altogether."""
    return [
        f"SELECT COUNT(*) FROM t WHERE a >= {n % 90} AND a < {n % 90 + 5} AND s = 'x{n // 90}'"
        for n in range(first, first + count)
    ]


def zipf(rng, texts, lines, power=1.0):
    """Lines drawn independently, the n-th text n^-power times as often as the first."""
    shares = np.arange(1, len(texts) + 1) ** -power
    return [texts[n] for n in rng.choice(len(texts), lines, p=shares / shares.sum())]
