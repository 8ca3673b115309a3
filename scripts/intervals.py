"""Writes docs/intervals.md: python -m benchmarks coverage --full --json | python scripts/intervals.py"""

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "intervals.md"
HEAD = """# How often intervals hold

Written by `python -m benchmarks coverage --full --json | python scripts/intervals.py`. Each line is that many
draws of the noise around one table: how often, in per cent, the interval of a value held the truth, at 80, 90
and 95%, and how often it was unbounded at 95%. The noise of a count has the standard deviation of the second
column, that of a sum as many times that as its largest weight; the errors of two answers correlate by 0.3.
2,000 draws tell a share of 80% to 1.8 points and one of 95% to 1.0 (two standard deviations).

- **Linear combinations, ratios, averages, shares of all groups** are in closed form. Where no interval is
  unbounded they are within {worst:.1f} points of their level ({where}). An unbounded interval, where the
  denominator may be 0, counts as one that holds the truth, which lifts its line above the level.
- **Quantiles** hold more often than they say, in {least:.1f}% of draws or more at 80%: a test at each point
  of the isotone curve nearest to the counts, with the error of a count before it was made isotone, which is
  larger; and an interval ends at values. Each is the interval of one quantile, also where a statement has
  several.
- **Deviations and roots** come from 400 draws of the joint law. Off by most is {drawn}.

| value | std of a count | rows of its group | draws | at 80% | at 90% | at 95% | unbounded | milliseconds |
|---|---|---|---|---|---|---|---|---|
"""
CLOSED = ("linear", "ratio", "average", "share of all")
DRAWN = ("deviation", "root")
QUANTILES = ("median", "quantile 0.9")
LEVELS = ("80%", "90%", "95%")


def page(rows: list[dict[str, Any]]) -> str:
    """The page, one line a row of the benchmark."""

    def off(row: dict[str, Any]) -> float:
        return max(abs(row[f"at {level}"] - float(level[:-1])) for level in LEVELS)

    def named(row: dict[str, Any]) -> str:
        return f"{row['kind']} of {row['denominator']:,} rows at std {row['std']:g}"

    closed = max((row for row in rows if row["kind"] in CLOSED and not row["unbounded"]), key=off)
    drawn = max((row for row in rows if row["kind"] in DRAWN), key=off)
    told = f"the {named(drawn)}, by {off(drawn):.1f} points"
    least = min(row["at 80%"] for row in rows if row["kind"] in QUANTILES)
    head = HEAD.format(least=least, worst=off(closed), where=f"the worst is a {named(closed)}", drawn=told)
    lines = [
        f"| {row['kind']} | {row['std']:g} | {row['denominator']:,} | {row['draws']:,} | "
        + " | ".join(f"{row[f'at {level}']:.1f}" for level in LEVELS)
        + f" | {row['unbounded']:.1f} | {row['milliseconds']:.1f} |\n"
        for row in rows
    ]
    return head + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page([json.loads(line) for line in sys.stdin]), encoding="utf-8")
