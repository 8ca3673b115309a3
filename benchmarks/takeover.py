"""Where Gaussian noise takes over from one pure release: errors of every kind of query, by size and δ.

``python -m benchmarks takeover --json | python -m benchmarks.takeover docs/images/takeover.png`` draws it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from laprasdp import Budget, Domain, Integers
from laprasdp.limits import DENSE_CELLS
from laprasdp.policy.design_factored import overall
from laprasdp.policy.primm_choice import primm
from laprasdp.policy.primm_factored import PrimmFactored, factored
from laprasdp.policy.primm_product import PrimmProduct, played
from laprasdp.policy.setting import Setting
from laprasdp.strategy.threads import one_thread
from laprasdp.style import GREY, INK, WARM

SIZES = {
    1: (260, 500, 720, 1_024),
    2: (17, 24, 33, 40, 48, 56, 64),
    3: (7, 9, 11, 13, 16),
    4: (5, 6, 7, 8),
}
DELTAS = (1e-3, 1e-6, 1e-9)
SHOWN = {"mean": "All kinds, root mean cube", "worst": "The worst kind"}


def rows(full: bool, quick: bool) -> Iterator[dict[str, Any]]:
    """
    One row a number of attributes, levels and δ; ε = 1, S = 100, nothing predicted.

    Parameters
    ----------
    full : bool
        As without it.
    quick : bool
        The smallest and the largest size alone.

    Yields
    ------
    dict
        Of the deviations of a pure release over those of Gaussian noise, one for each kind of query: `best`,
        `mean` (root mean cube) and `worst`; what is `chosen`; and `seconds` of CPU to choose.

    Notes
    -----
    Of the pure release deviations are exact; of Gaussian noise those of a stream of 20 queries of the kind.
    """
    for count, sizes in SIZES.items():
        for size in (sizes[0], sizes[-1]) if quick else sizes:
            domain = Domain(**{f"a{place}": Integers(1, size) for place in range(count)})
            assert domain.size > DENSE_CELLS
            for delta in DELTAS:
                yield _compared(Setting(domain, Budget(1, delta), 100), count, size)


@one_thread()
def _compared(setting: Setting, count: int, size: int) -> dict[str, Any]:
    begun = time.process_time()
    chosen = primm(setting)
    seconds = time.process_time() - begun
    gaussian = PrimmProduct(setting)
    _, ratios, shares = factored(setting, (gaussian, played(setting, gaussian.design)))
    return {
        "attributes": count,
        "levels": size,
        "cells": setting.domain.size,
        "delta": setting.budget.delta,
        "best": float(ratios.min()),
        "mean": overall(ratios, shares),
        "worst": float(ratios.max()),
        "chosen": "pure" if isinstance(chosen, PrimmFactored) else "gaussian",
        "seconds": seconds,
    }


def main() -> int:
    """Read rows from standard input and write the picture to the path given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.takeover", description=__doc__)
    parser.add_argument("path", type=Path)
    chosen = parser.parse_args()
    found = [*map(json.loads, sys.stdin)]
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for axes, (key, title) in zip(panels, SHOWN.items(), strict=True):
        for delta, shade in ((1e-6, WARM), (1e-9, INK)):
            for count, dash in zip(SIZES, ("-.", "-", "--", ":"), strict=True):
                own = [row for row in found if (row["attributes"], row["delta"]) == (count, delta)]
                line = axes.plot([row["cells"] for row in own], [row[key] for row in own], dash, color=shade)
                line[0].set(marker="o", ms=3, label=f"{count} attribute{'s' * (count > 1)}, δ = {delta:.0e}")
        axes.axhline(1.0, color=GREY, lw=0.8)
        axes.set_title(title, loc="left")
        axes.set(xlabel="cells", ylabel="pure error / Gaussian error", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8, ncols=2, loc="lower right")
    figure.savefig(chosen.path, dpi=130)
    return 0


if __name__ == "__main__":
    sys.exit(main())
