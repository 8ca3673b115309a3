"""
Writes docs/dashboards.md: python -m benchmarks dashboard --data FOLDER --json | python scripts/dashboard.py
"""

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "dashboards.md"
HEAD = """# What a dashboard gets

Written by `python -m benchmarks dashboard --data FOLDER --json | python scripts/dashboard.py`:
statements that analysts wrote for a dashboard over US flights of half a year (a date, an hour, a state, a
delay of 301 values, bins of distance), in the order of the file, at ε = 1, δ = 10⁻⁷ and a horizon of 200.
PRIMM knows nothing of them, or has every second line as its log and is asked the others; independent noise
is an equal share for each.

- **exact**: all rows of the answer are DuckDB's, each value within six standard deviations. Groups by the
  label of a bin of distance, which DuckDB does not have, are not compared and not exact; nor are they where
  `LIMIT` or `HAVING` chooses among values that noise can exchange.
- **mae**: the mean absolute error of a value; counts, sums and shares are in it together, so it compares
  policies, not kinds. **relative**: the median of the error over the value.
- **seconds**: at the median of the statements, beside other programs on two cores.

Refused are: {refused}.

| policy | kind | asked | answered | exact | mae | relative | seconds |
|---|---|---|---|---|---|---|---|
"""
KEYS = ("policy", "kind", "asked", "answered", "exact", "mae", "relative", "seconds_p50")


def spelled(value: str | float | None) -> str:
    """What a cell of the table says."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return "–" if value is None else str(value).replace("_", " ")


def page(rows: list[dict[str, Any]]) -> str:
    """The page, one line a policy and kind."""
    reasons = dict.fromkeys(row["reason"].partition(";")[0] for row in rows if "reason" in row)
    lines = ["| " + " | ".join(spelled(row[key]) for key in KEYS) + " |\n" for row in rows if "kind" in row]
    return HEAD.format(refused="; ".join(f"`{reason}`" for reason in reasons)) + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page([json.loads(line) for line in sys.stdin]))
