"""Makes the ledgers of tests/ledgers by the command line alone: python tests/make_ledgers.py FOLDER

They were made once, by the version that their README names, and are never made again: that later versions
read what this one wrote is what they are for.  The script stays so that anybody sees what they hold, and
makes ledgers of a version to come, in another folder.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from command import invoke
from postgres import SECRET, Server
from typer.testing import CliRunner

from laprasdp.cli.app import app

PEOPLE = """
[domain.age]
type = "integers"
min = 0
max = 7
[domain.sex]
type = "categories"
values = ["F", "M"]
nullable = true
"""
WIDE = """
[domain.age]
type = "integers"
min = 0
max = 47
[domain.sex]
type = "categories"
values = ["F", "M"]
nullable = true
[domain.pay]
type = "bins"
edges = [0, 10, 20, 30, 40, 50, 60, 70, 80]
"""
GROWING = """
[windows]
attribute = "day"
step = "month"
{budgets}
[domain.n]
type = "integers"
min = 0
max = 7
[domain.day]
type = "dates"
first = 2024-01-01
last = 2024-03-31
step = "month"
"""
COUNT = "SELECT COUNT(*) FROM people WHERE "
PREDICTED = [f"{COUNT}age < 3", f"{COUNT}age BETWEEN 2 AND 5 AND sex = 'F'"]
OTHERS = [f"{COUNT}age IN (1, 4, 6)", f"{COUNT}sex IS NULL OR age = 7"]
GROUPED = "SELECT sex, COUNT(*) FROM people WHERE age >= 2 GROUP BY sex"
SUM = "SELECT SUM(age) FROM people WHERE sex = 'M'"
STREAM = (PREDICTED[0], OTHERS[0], PREDICTED[1], GROUPED, OTHERS[0], SUM, PREDICTED[0], OTHERS[1])
NEXT = f"{COUNT}age IN (0, 5) AND sex = 'M'"
SPENDERS = ["static", "smooth", "smooth-cache", "independent"]


@dataclass
class Case:
    """One ledger: what its lapras.toml says, the stream, and whether its budget is raised in the middle."""

    name: str
    stream: str = ""
    table: str = "people"
    domain: str = PEOPLE
    privacy: str = ""
    delta: str = "1e-6"
    horizon: str = "12"
    predictions: str = json.dumps(PREDICTED)
    asked: Sequence[str] = STREAM
    raised: bool = True
    period: str | None = None
    following: str = NEXT
    caps: Mapping[str, float] = field(default_factory=dict)

    def toml(self, ledger: str, *, raised: bool) -> str:
        """Its lapras.toml, before or after the raise."""
        epsilon = "2.0" if raised and not self.period else "1.0"
        of_period = f"[windows.budgets]\n{self.period} = {{ epsilon = 2.0 }}\n" if raised else ""
        parts = [
            f'[source]\nfile = "../people.csv"\npublic = true\nname = "{self.table}"',
            f"[privacy]\nepsilon = {epsilon}\ndelta = {self.delta}\n{self.privacy}",
            f"[stream]\nhorizon = {self.horizon}\npredictions = {self.predictions}\n{self.stream}",
            f"[ledger]\n{ledger}",
            self.domain.replace("{budgets}", of_period),
        ]
        if self.caps:
            parts.append("[analysts]\n" + "".join(f"{who} = {cap}\n" for who, cap in self.caps.items()))
        return "\n".join(parts)

    def make(self, ledger: str) -> list[dict[str, object]]:
        """Ask the stream in the present folder; what was shown, refused and raised."""
        Path("lapras.toml").write_text(self.toml(ledger, raised=False))
        done = []
        half = len(self.asked) // 2
        for place, statement in enumerate(self.asked):
            if self.raised and place == half:
                options = ["--period", self.period] if self.period else []
                invoke("budget", "raise", "--epsilon", "2", "--yes", "--analyst", "curator", *options)
                Path("lapras.toml").write_text(self.toml(ledger, raised=True))
            done += ask(statement, [*self.caps, "ada", "bob"][place % (len(self.caps) or 2)])
        return done


def ask(statement: str, analyst: str) -> list[dict[str, object]]:
    """Ask one statement; a row for every answer, or one that says why it was refused."""
    done = CliRunner().invoke(app, ["ask", statement, "--analyst", analyst, "--json"])
    asked: dict[str, object] = {"analyst": analyst, "query": statement}
    if done.exit_code == 1:
        return [asked | {"refused": done.stderr.strip()}]
    assert done.exit_code == 0, done.output
    kept = ("group", "value", "std", "source", "charge", "remaining")
    rows = map(json.loads, done.stdout.splitlines())
    return [asked | {key: row[key] for key in kept if key in row} for row in rows]


def cases() -> list[Case]:
    """Every policy under every accounting that it takes, and what else a ledger may hold."""
    made = [
        Case(f"{policy}-{accounting}", f'policy = "{policy}"\naccounting = "{accounting}"\n')
        for policy in SPENDERS
        for accounting in ("gaussian", "basic")
    ]
    made += [
        Case(f"{policy}-{accounting}", f'policy = "{policy}"\naccounting = "{accounting}"\n', raised=False)
        for policy in ("histogram", "histogram-total", "offline")
        for accounting in ("gaussian", "basic")
    ]
    persons = 'column = "person"\nmax_rows = 2\n'
    return [
        *made,
        Case("laplace-counts-gaussian", 'policy = "laplace-counts"\n', raised=False),
        Case("laplace-basic", 'policy = "laplace"\naccounting = "basic"\n'),
        Case("primm", delta="1e-3"),
        Case("primm-pure", raised=False),
        Case("primm-wide", domain=WIDE, predictions=f'["{COUNT}age < 3", "{COUNT}age < 9 AND pay < 20"]'),
        Case("primm-unknown-horizon", horizon='"unknown"', delta="1e-3"),
        Case("primm-expected", "overlap = 0.5\n", predictions='"predictions.json"', delta="1e-3"),
        Case("primm-alone", predictions="[]", privacy=persons, delta="1e-3"),
        Case("caps-gaussian", 'policy = "independent"\n', caps={"ada": 0.9, "bob": 0.2}),
        Case("caps-basic", 'policy = "smooth"\naccounting = "basic"\n', caps={"ada": 0.9, "bob": 0.05}),
        Case("exhausted", 'policy = "independent"\n', horizon="3", raised=False),
        Case("persons-basic", 'policy = "static"\naccounting = "basic"\n', privacy=persons),
        Case("paid-again", 'policy = "independent"\nrepeats = "pay"\n'),
        Case("read-otherwise", 'policy = "smooth"\nsplit = "query-heavy"\nestimate = "continuous"\n'
             'overflow = "leftover"\nwarm_up = "binary"\n'),
        in_periods("visits", Case("periods-independent", 'policy = "independent"\n')),
        in_periods("people", Case("periods-primm", raised=False)),
    ]  # fmt: skip


def in_periods(table: str, case: Case) -> Case:
    """The same of a table that grows, under a name of its own: it names the ledgers of the periods."""
    count = f"SELECT COUNT(*) FROM {table} WHERE "
    stream = [f"{count}n < 2", f"{count}n = 1 AND day < '2024-02-01'", f"{count}n = 3", f"{count}n = 3"]
    stream += [f"SELECT n, COUNT(*) FROM {table} GROUP BY n", stream[0]]
    case.table, case.domain, case.period = table, GROWING, "2024-02-01"
    case.predictions, case.asked, case.following = json.dumps(stream[:1]), stream, f"{count}n = 2"
    return case


def table() -> str:
    """A table for everybody: 300 rows of 200 persons, made by arithmetic."""
    lines = ["person,age,sex,pay,n,day"]
    for row in range(300):
        sex = ("F", "M", "")[row * row % 7 % 3]
        day = f"2024-{1 + row % 3:02}-{1 + row * 11 % 28:02}"
        lines.append(f"{row * 2 // 3},{row * row % 11},{sex},{row * 31 % 90},{row % 8},{day}")
    return "\n".join(lines) + "\n"


def write(case: Case, folder: Path, server: Server) -> None:
    """The ledger of `case` in SQLite and in PostgreSQL, each with its own noise, and what was shown."""
    folder.mkdir()
    os.chdir(folder)
    if "predictions.json" in case.toml("", raised=False):
        learn(case)
    url = server.url.replace(f":{SECRET}", "")
    places = {"postgresql": f'url = "{url}"\ndataset = "{case.name}"', "sqlite": 'file = "lapras.ledger"'}
    if case.period:
        places["postgresql"] = f'url = "{url}"'
    for kind, place in places.items():
        shown = case.make(place)
        Path(f"{kind}.shown.jsonl").write_text("".join(json.dumps(row) + "\n" for row in shown))
        Path(f"{kind}.jsonl").write_text(invoke("ledger", "export").stdout)
    with closing(sqlite3.connect("lapras.ledger")) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    for end in ("-wal", "-shm"):
        Path(f"lapras.ledger{end}").unlink(missing_ok=True)
    after(case)
    pack(folder / "lapras.ledger")


def after(case: Case) -> None:
    """Ask one more statement of a copy of the ledger in the present folder; what was shown."""
    folder = Path.cwd()
    copy = folder.with_name(f"{case.name}.copy")
    shutil.copytree(folder, copy)
    os.chdir(copy)
    shown = ask(case.following, next(iter(case.caps or ["ada"])))
    os.chdir(folder)
    shutil.rmtree(copy)
    with open("sqlite.shown.jsonl", "a") as lines:
        lines.writelines(json.dumps({"next": True} | row) + "\n" for row in shown)


def pack(path: Path) -> None:
    """Compress a file; the same bytes give the same file."""
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


def learn(case: Case) -> None:
    """Write predictions.json of a small public log."""
    log = [f'2024-01-{1 + day:02},"{PREDICTED[day % 2]}"' for day in range(20)]
    Path("log.csv").write_text("\n".join(["time,query", *log]))
    plain = case.toml('file = "none"', raised=False).replace('"predictions.json"', "[]")
    Path("plain.toml").write_text(plain)
    invoke("predict", "fit", "log.csv", "--log-is", "public", "--config", "plain.toml")
    Path("plain.toml").unlink()
    Path("log.csv").unlink()


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "people.csv").write_text(table())
    server = Server()
    os.environ["PGPASSWORD"] = SECRET
    try:
        for case in cases():
            print(case.name, flush=True)
            write(case, folder / case.name, server)
        server.dump(folder / "postgresql.sql")
        pack(folder / "postgresql.sql")
    finally:
        server.remove()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
