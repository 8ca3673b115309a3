"""The demonstration: the packaged flights table, two analysts and a curator, in a folder for this once."""

from __future__ import annotations

from pathlib import Path

from laprasdp.service.accounts import Accounts

SETTINGS = """\
# US domestic flights of 1 to 4 January 2015, 55,105 rows, public domain; the table ships with the package.
[source]
dataset = "flights"

[privacy]
epsilon = 1.0
delta = 1e-6

[stream]
horizon = 40
predictions = [
  "SELECT COUNT(*) FROM flights",
  "SELECT COUNT(*) FROM flights GROUP BY UNIQUE_CARRIER",
  "SELECT COUNT(*) FROM flights WHERE ARR_DELAY >= 15",
  "SELECT COUNT(*) FROM flights WHERE ARR_DELAY >= 60",
  "SELECT COUNT(*) FROM flights WHERE DISTANCE < 600",
]

[ledger]
file = "lapras.ledger"

[domain.UNIQUE_CARRIER]
type = "categories"
values = ["AA", "AS", "B6", "DL", "EV", "F9", "HA", "MQ", "NK", "OO", "UA", "US", "VX", "WN"]

[domain.ARR_DELAY] # minutes, negative is early; NULL: the flight was cancelled or diverted
type = "bins"
edges = [-1440, -60, -30, -15, 0, 5, 10, 15, 30, 45, 60, 90, 120, 180, 240, 480, 2880]
whole = true
nullable = true

[domain.DISTANCE] # miles
type = "bins"
start = 0
stop = 5200
width = 200
whole = true
"""
PEOPLE = (("ada", "analyst", 0.8), ("ben", "analyst", 0.3), ("cleo", "curator", None))
"""Name, role and cap."""


def prepare(folder: Path) -> Path:
    """Write the demonstration's `lapras.toml` into a folder."""
    path = folder / "lapras.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    return path


def invite(accounts: Accounts) -> dict[str, str]:
    """Make the people of the demonstration; a token for each, by name and role."""
    links = {}
    for name, role, cap in PEOPLE:
        if accounts.named(name) is None:
            accounts.add(name, role, cap)
        links[f"{name}, {role}"] = accounts.issue(name, "demonstration", days=1)
    return links
