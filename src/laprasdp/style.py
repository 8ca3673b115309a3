"""How every picture looks, in the command, on the pages, in benchmarks and experiments.

Dark blue is what LAPRAS says, orange what it is held against; who sees few colours tells them apart by their
lightness.
"""

from __future__ import annotations

from typing import Any

INK, WARM, SOFT = "#17324d", "#c2571a", "#7aa6c2"
GREY, NOTE, PALE = "#8a949e", "#56606a", "#e6e9ec"
"""Of lines that only compare or frame, of small print, and of areas behind."""

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "axes.prop_cycle": f"cycler('color', ['{INK}', '{WARM}', '{SOFT}', '{GREY}'])",
    "grid.color": PALE,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 160,
}
"""For `matplotlib.rc_context` or `matplotlib.rcParams.update`."""

HEADING: Any = {"loc": "left", "fontweight": "bold", "fontsize": 11}
"""Of a title of axes."""
