"""Checks exported ledgers by docs/ledger-format.md alone: python replay_ledger.py EXPORT.jsonl

Standard library only; nothing of LAPRAS is used.  Exit code 0: sound.  1: findings, one on a line.
"""

import base64
import hashlib
import itertools
import json
import math
import struct
import sys
import zlib
from fractions import Fraction

CLASSES = 1_000_000  # beyond these, a sum is replaced by its maximum on every cell


def integers(form):
    if isinstance(form, list):
        return [int(value) for value in form]
    words = zlib.decompress(base64.b64decode(form["zlib"]))
    return list(struct.unpack(f"<{len(words) // 8}q", words))


def matrix(form):
    values, (rows, columns) = integers(form["values"]), form["shape"]
    return [values[row * columns : (row + 1) * columns] for row in range(rows)]


def norm(column):
    return sum(value * value for value in column)


def delta_of(epsilon, mu):
    """δ of unit Gaussian noise on sensitivity μ, at ε."""
    tails = [math.erfc((epsilon / mu + sign * mu / 2) / math.sqrt(2)) / 2 for sign in (-1, 1)]
    return tails[0] - math.exp(epsilon) * tails[1]


class Function:
    """A whole number on every cell."""

    def __init__(self, classes, shape, weights):
        self.classes, self.shape, self.weights = classes, shape, weights

    def at(self, cell):
        place = 0
        for (name, labels), size in zip(self.classes.items(), self.shape, strict=False):
            place = place * size + labels[cell[name]]
        return self.weights[place]


def joint(functions):
    """What the functions tell apart: classes of levels, how many, and a cell of each combination."""
    classes, first = {}, {}
    for name in dict.fromkeys(name for function in functions for name in function.classes):
        columns = [function.classes[name] for function in functions if name in function.classes]
        rows = list(zip(*columns, strict=True))
        first[name] = {row: level for level, row in reversed(list(enumerate(rows)))}  # its first level
        numbers = {row: number for number, row in enumerate(first[name])}
        classes[name] = [numbers[row] for row in rows]
    levels = itertools.product(*(found.values() for found in first.values()))
    return (
        classes,
        [len(found) for found in first.values()],
        (dict(zip(first, cell, strict=True)) for cell in levels),
    )


class Replay:
    def __init__(self, settings):
        self.names = [name for name, _ in settings["domain"]]
        self.basic, self.rows = settings["accounting"] == "basic", settings["unit"]["max_rows"]
        self.pays = settings["reading"]["repeats"] == "pay"
        self.budget, self.shown, self.owed, self.draws = settings["budget"], {}, False, 0
        self.spent = Function({}, [], [0])  # units of μ² on each cell
        self.epsilon = self.delta = 0  # units, under basic accounting
        self.pure = False  # one release took everything

    def look(self, entry):
        """What is wrong with the next entry."""
        kind, owed = entry["kind"], self.owed
        self.owed = kind == "release" and not entry["opening"]
        if owed != (kind == "reply" and entry["measured"]):
            yield "a release and the reply that it was made for do not stand together"
        if kind == "release":
            yield from self.release(entry)
        elif kind == "reply":
            for query, answer in zip(entry["queries"], entry["answers"], strict=True):
                value = answer and (answer["value"], answer["variance"])
                if self.shown.setdefault(json.dumps(query), value) != value and not self.pays:
                    yield "it shows another answer to the same query than before"
        elif kind == "raise":
            if entry["old"] != self.budget or any(
                entry["new"][key] < self.budget[key] for key in self.budget
            ):
                yield "it is no raise of the budget"
            if self.pure:
                yield "nothing can be added to a pure release"
            self.budget = entry["new"]

    def release(self, entry):
        charge, measurement = entry["charge"], entry["measurement"]
        self.draws += charge["draws"]
        if len(integers(entry["noisy"])) != charge["draws"]:
            yield "it has more or fewer noisy values than it was charged for"
        if self.basic:
            self.epsilon += int(charge["epsilon"])
            self.delta += int(charge["delta"])
            if not self.bought(charge, measurement):
                yield "its noise is too small for its charge"
        else:
            amounts, pure = self.function(charge["amounts"]), charge.get("pure", False)
            if pure != (measurement["law"] == "laplace"):
                yield "it is charged as if it had another noise"
            elif pure and self.laplace(measurement) > self.budget["epsilon"]:
                yield "its noise is too small for the budget"
            elif not pure and any(
                amounts.at(cell) != cost for cell, cost in self.costs(measurement, amounts)
            ):
                yield "its charge is not what its measurement costs"
            if self.pure or (pure and any(self.spent.weights)):
                yield "a pure release has all of the budget, and stands alone"
            self.pure |= pure
            self.add(amounts)
        if not self.fits():
            yield "the budget is passed"

    def function(self, form):
        classes = {name: integers(form["classes"][name]) for name in self.names if name in form["classes"]}
        return Function(classes, form["shape"], integers(form["weights"]))

    def add(self, amounts):
        classes, shape, cells = joint([self.spent, amounts])
        if math.prod(shape) > CLASSES:
            self.spent = Function({}, [], [max(self.spent.weights)])
            classes, shape, cells = joint([self.spent, amounts])
        self.spent = Function(classes, shape, [self.spent.at(cell) + amounts.at(cell) for cell in cells])

    def fits(self):
        epsilon, delta = self.budget["epsilon"], self.budget["delta"]
        spendable = Fraction(delta) * (1 - Fraction(1e-12))
        if self.draws > Fraction(delta) * Fraction(1e-12) * 20 * 2**104 / Fraction(1 + math.exp(epsilon)):
            return False
        if self.basic:
            return self.epsilon <= Fraction(epsilon) * 2**40 and self.delta <= spendable * 2**100
        most = max(self.spent.weights)
        return not most or delta_of(epsilon, math.sqrt(most / 2**40)) <= float(spendable) * (1 + 1e-9)

    def columns(self, measurement, *others):
        """(cell, column of what is measured there) for each combination that anything tells apart."""
        queries = [self.function(query) for query in measurement["queries"]]
        rows = matrix(measurement["matrix"]) if "matrix" in measurement else None
        multiple, known = int(measurement.get("multiple", 1)), {}
        for cell in joint([*queries, *others])[2]:
            column = tuple(query.at(cell) for query in queries)
            if column not in known:
                product = [sum(map(int.__mul__, row, column)) for row in rows] if rows else column
                known[column] = [value * multiple for value in product]
            yield cell, known[column]

    def costs(self, measurement, *others):
        """(cell, units of μ² that the measurement costs there)."""
        factor = Fraction(self.rows**2 * 2**40, 4 ** measurement["bits"])
        if "limit" in measurement:
            for cell in joint(others)[2]:
                yield cell, math.ceil(int(measurement["limit"]) * factor)
            return
        if "sets" not in measurement:
            for cell, column in self.columns(measurement, *others):
                yield cell, math.ceil(norm(column) * factor)
            return
        squares = {
            name: max(map(norm, zip(*matrix(form), strict=True)))
            for name, form in measurement["factors"].items()
        }
        each = [math.prod(squares[name] for name in names) for names in measurement["sets"]]
        bound = sum(c * c * s for c, s in zip(integers(measurement["multipliers"]), each, strict=True))
        for cell in joint(others)[2]:
            yield cell, math.ceil(bound * factor)

    def laplace(self, measurement):
        """ε of a release with Laplace noise."""
        most = max(sum(map(abs, column)) for _, column in self.columns(measurement))
        return Fraction(most * self.rows, int(measurement["scale"]))

    def bought(self, charge, measurement):
        """Whether (ε, δ) of a charge pays for its noise, under basic accounting."""
        epsilon, delta = int(charge["epsilon"]) / 2**40, int(charge["delta"]) / 2**100
        if measurement["law"] == "laplace":
            return self.laplace(measurement) <= epsilon
        most = max(cost for _, cost in self.costs(measurement)) - 1  # it was rounded up
        return most <= 0 or delta_of(epsilon, math.sqrt(most / 2**40)) <= delta * (1 + 1e-9)


def check(header, kept):
    """Print what is wrong with one ledger, or that all is sound; whether it is."""
    assert header["format"] == 1, "this script knows format 1"
    name, replay, found = header.get("dataset", "ledger"), Replay(json.loads(header["settings"])), 0
    digest = hashlib.sha256(header["settings"].encode()).hexdigest()
    for position, line in enumerate(kept):
        entry, digest = (
            json.loads(line["entry"]),
            hashlib.sha256((digest + line["entry"]).encode()).hexdigest(),
        )
        findings = list(replay.look(entry))
        if (line["digest"], entry["position"]) != (digest, position):
            findings.insert(0, "it does not follow from the entry before")
            digest = line["digest"]
        for finding in findings:
            print(f"{name}, entry {position}: {finding}")
        found += len(findings)
    if replay.owed:
        print(f"{name}: the last release has no reply")
    if found or replay.owed:
        return False
    unit, most = ("ε", replay.epsilon) if replay.basic else ("μ²", max(replay.spent.weights))
    print(f"{name}: {len(kept)} entries, all sound; {most} units of {unit} spent; head {digest}")
    return True


def main(path):
    ledgers = []
    with open(path, encoding="ascii") as lines:
        for line in map(json.loads, lines):
            if "settings" in line:
                ledgers.append((line, []))
            else:
                ledgers[-1][1].append(line)
    sound = [check(*ledger) for ledger in ledgers]
    return 0 if sound and all(sound) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
