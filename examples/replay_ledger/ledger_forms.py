"""What an exported ledger holds, by docs/ledger-format.md: whole numbers, matrices, functions on cells."""

import base64
import itertools
import json
import math
import re
import struct
import zlib
from fractions import Fraction

CLASSES = 1_000_000  # beyond these, a sum is replaced by its maximum on every cell
SOURCES = {"predicted", "measured", "cache", "replay", "histogram", "background"}
PRIMM = {"primm", "laplace-counts"}
ONE_BY_ONE = {"independent", "laplace", "static", "smooth", "smooth-cache"}  # what they measure is one row
WHOLE, WHOLES, TEXT = (int, str), (list, dict), (str, type(None))
KEYS = {
    "stamp": {"position": int, "at": str, "analyst": TEXT, "statement": TEXT, "kind": str},
    "release": {"measurement": dict, "noisy": WHOLES, "charge": dict, "allowance": WHOLE, "opening": bool},
    "reply": {"answers": list, "measured": bool},
    "refusal": {"reason": str, "counted": bool},
    "raise": {"old": dict, "new": dict},
    "answer": {"value": float, "variance": float, "source": str, "law": str, "parts": float},
    "fitted": {"fitted": float},
    "budget": {"epsilon": float, "delta": float},
    "function": {"classes": dict, "shape": list, "weights": WHOLES},
    "persons": {"persons": bool},
    "matrix": {"shape": list, "values": WHOLES},
    "noise": {"bits": int, "law": str, "scale": WHOLE},
    "finer": {"scale_bits": int},
    "queries": {"queries": list},
    "groups": {"groups": dict},
    "cut": {"whole": dict, "by": list, "levels": list, "places": WHOLES},
    "version": {"format": int},
    "again": {"again": bool},
    "one by one": {"multiple": WHOLE},
    "several times": {"times": WHOLES},
    "combined": {"matrix": dict},
    "marginals": {"sets": list, "multipliers": WHOLES, "factors": dict},
    "product": {"product": dict},
    "tree": {"depths": list, "levels": int},
    "part": {"set": list, "nodes": dict},
    "gaussian": {"amounts": dict, "draws": int, "pure": bool},
    "basic": {"epsilon": WHOLE, "delta": WHOLE, "draws": int},
}  # fmt: skip
LAWS = ("gaussian", "laplace", "geometric")
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error, zlib.error)


def wants(form, *names):
    """Nothing if a form has the keys of these names and no others, with values of their types."""
    keys = {key: kinds for name in names for key, kinds in KEYS[name].items()}
    if not isinstance(form, dict) or form.keys() != keys.keys():
        raise ValueError(f"{names[-1]} has other keys")
    for key, kinds in keys.items():
        if type(form[key]) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
            raise ValueError(f"{key} is of another type")


def whole(value):
    safe = -(2**53) < int(value) < 2**53
    if type(value) is not (int if safe else str) or not re.fullmatch("-?[0-9]+", str(value)):
        raise ValueError(f"{value!r} is no whole number")
    return int(value)


def integers(form):
    if isinstance(form, list):
        return [whole(value) for value in form]
    if form.keys() == {"runs"}:
        runs = integers(form["runs"])
        return [label for label, count in zip(runs[::2], runs[1::2], strict=True) for _ in range(count)]
    words = zlib.decompress(base64.b64decode(form["zlib"]))
    return list(struct.unpack(f"<{len(words) // 8}q", words))


def steps(measurement):
    """The scale of Laplace noise in steps of the grid."""
    return Fraction(whole(measurement["scale"]), 2 ** measurement.get("scale_bits", 0))


def times_of(measurement):
    """How many times each query is measured that is measured by itself."""
    queries = measurement.get("queries", [None])  # groups are measured once each
    return integers(measurement["times"]) if "times" in measurement else [1] * len(queries)


def noise_law(measurement):
    """The law of the noise on each row: on the whole numbers it is geometric, but where it is very large."""
    whole_ones = measurement["law"] == "laplace" and measurement["bits"] == 0 and steps(measurement) < 2**20
    return "geometric" if whole_ones else measurement["law"]


def whole_noise(entry):
    """Whether an entry holds Laplace noise on the whole numbers, or an answer with it."""
    if "measurement" in entry:
        measurement = entry["measurement"]
        return "scale_bits" in measurement or noise_law(measurement) == "geometric"
    return any(answer and answer.get("law") == "geometric" for answer in entry.get("answers", ()))


def matrix(form):
    wants(form, "matrix")
    values, (rows, columns) = integers(form["values"]), form["shape"]
    if not values or len(values) != rows * columns or min(rows, columns) < 1:
        raise ValueError("a matrix has another shape")
    return [values[row * columns : (row + 1) * columns] for row in range(rows)]


def depths(form):
    """The matrices of a factor: one, or that of the nodes of each depth where the attribute is long."""
    if "depths" not in form:
        return [matrix(form)]
    wants(form, "tree")
    found = [matrix(one) for one in form["depths"]]
    if math.prod(len(rows[0]) for rows in found) < form["levels"]:
        raise ValueError("a tree does not reach all levels")
    return found


def norm(column):
    return sum(value * value for value in column)


def delta_of(epsilon, mu):
    """δ of unit Gaussian noise on sensitivity μ, at ε."""
    tails = [math.erfc((epsilon / mu + sign * mu / 2) / math.sqrt(2)) / 2 for sign in (-1, 1)]
    return tails[0] - math.exp(epsilon) * tails[1]


class Function:
    """A whole number on every cell; or, of 0 and 1, the persons who have a row where it is 1."""

    def __init__(self, classes, shape, weights, persons=False):
        self.classes, self.shape, self.weights, self.persons = classes, shape, weights, persons

    @property
    def key(self):
        labels = tuple((name, *labels) for name, labels in self.classes.items())
        return labels, tuple(self.weights), self.persons

    def at(self, cell):
        place = 0
        for (name, labels), size in zip(self.classes.items(), self.shape, strict=False):
            place = place * size + labels[cell[name]]
        return self.weights[place]


def simplest(function):
    """The same function in its one canonical form."""
    classes, shape, weights = dict(function.classes), list(function.shape), list(function.weights)
    for name in function.classes:
        axis = list(classes).index(name)
        inner = math.prod(shape[axis + 1 :])
        slices = [[] for _ in range(shape[axis])]
        for place, weight in enumerate(weights):
            slices[place // inner % len(slices)].append(weight)
        kept = list(dict.fromkeys(tuple(slices[label]) for label in dict.fromkeys(classes[name])))
        classes[name] = [kept.index(tuple(slices[label])) for label in classes[name]]
        shape[axis] = len(kept)
        weights = [
            kept[place // inner % len(kept)][place // inner // len(kept) * inner + place % inner]
            for place in range(math.prod(shape))
        ]
        if len(kept) == 1:
            del classes[name], shape[axis]
    return Function(classes, shape, weights)


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
    cells = (dict(zip(first, cell, strict=True)) for cell in levels)
    return classes, [len(found) for found in first.values()], cells
