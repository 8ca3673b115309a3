"""What the forms of a ledger mean as functions of the cells, and what measuring them costs."""

import itertools
import math
from fractions import Fraction

from ledger_forms import (
    CLASSES,
    Function,
    depths,
    integers,
    joint,
    matrix,
    norm,
    simplest,
    steps,
    times_of,
    wants,
    whole,
)


class Meaning:
    def __init__(self, settings):
        self.names, self.rows = [name for name, _ in settings["domain"]], settings["unit"]["max_rows"]
        self.levels = {}  # how many each attribute has, as the first form of it says

    def asked(self, form):
        """What is asked, each query as the only function of its meaning."""
        if "groups" in form:
            return self.cut(form["groups"])[0]
        return list(map(self.canonical, form["queries"]))

    def cut(self, form):
        """The groups of a whole, and the sum of them."""
        wants(form, "cut")
        whole, sizes = self.canonical(form["whole"]), dict(zip(form["by"], form["levels"], strict=True))
        places, count = integers(form["places"]), math.prod(sizes.values())
        if not sizes or form["by"] != [name for name in self.names if name in sizes]:
            raise ValueError("groups are made of attributes in the order of the domain")
        if any(type(size) is not int or size != self.levels.setdefault(name, size) or size < 1
               for name, size in sizes.items()):  # fmt: skip
            raise ValueError("an attribute has another number of levels")
        if not places or len(set(places)) < len(places) or not 0 <= min(places) <= max(places) < count:
            raise ValueError("a group is none, or is given twice")
        chosen, mask = [], [0] * count
        for place in places:
            mask[place] = 1
            chosen.append(self.group(whole, sizes, place))
        every = simplest(Function({name: list(range(sizes[name])) for name in sizes}, form["levels"], mask))
        classes, shape, cells = joint([whole, every])
        if math.prod(shape) > CLASSES:  # then those that are left out are charged, too
            return chosen, whole
        return chosen, Function(classes, shape, [whole.at(cell) * every.at(cell) for cell in cells])

    def group(self, whole, sizes, place):
        """What the whole counts where all levels are those of one place."""
        own, classes = {}, {}
        for name in reversed(sizes):
            place, own[name] = divmod(place, sizes[name])
        for name in self.names:
            if sizes.get(name, 1) > 1:
                classes[name] = [int(level == own[name]) for level in range(sizes[name])]
            elif name in whole.classes and name not in sizes:
                classes[name] = whole.classes[name]
        shape = [max(labels) + 1 for labels in classes.values()]
        first = [[labels.index(kind) for kind in range(size)] for labels, size in
                 zip(classes.values(), shape, strict=True)]  # fmt: skip
        cells = (dict(zip(classes, cell, strict=True)) for cell in itertools.product(*first))
        inside = [own | cell if all(cell[name] == own[name] for name in cell.keys() & own.keys()) else None
                  for cell in cells]  # fmt: skip
        return simplest(Function(classes, shape, [whole.at(cell) if cell else 0 for cell in inside]))

    def canonical(self, form):
        """A query; no other form of it has the same meaning."""
        query = self.function(form)
        for axis, labels in enumerate(query.classes.values()):
            inner, slices = math.prod(query.shape[axis + 1 :]), [[] for _ in range(query.shape[axis])]
            for place, weight in enumerate(query.weights):
                slices[place // inner % len(slices)].append(weight)
            first = list(dict.fromkeys(labels)) == list(range(len(slices)))  # numbered as they appear
            if not first or not 1 < len(slices) == len(set(map(tuple, slices))):
                raise ValueError("a query is not written as the only one of its meaning")
        return query

    def function(self, form):
        wants(form, "function", *(["persons"] if "persons" in form else []))
        classes = {name: integers(form["classes"][name]) for name in self.names if name in form["classes"]}
        shape, weights = form["shape"], integers(form["weights"])
        for (name, labels), size in zip(classes.items(), shape, strict=True):
            if len(labels) != self.levels.setdefault(name, len(labels)):
                raise ValueError(f"{name} has another number of levels")
            if not 0 <= min(labels) <= max(labels) < size:
                raise ValueError(f"a class of {name} has no weight")
        if len(classes) != len(form["classes"]) or len(weights) != math.prod(map(whole, shape)):
            raise ValueError("a function of the cells has another shape")
        if "persons" in form and not (form["persons"] and set(weights) <= {0, 1}):
            raise ValueError("a person counts once or not at all")
        return Function(classes, shape, weights, "persons" in form)

    def columns(self, measurement, *others):
        """(cell, column of what is measured there) for each combination that anything tells apart."""
        if "groups" in measurement:
            queries = [self.cut(measurement["groups"])[1]]
        else:
            queries = [self.function(query) for query in measurement["queries"]]
        rows = matrix(measurement["matrix"]) if "matrix" in measurement else None
        multiple, times, known = whole(measurement.get("multiple", 1)), times_of(measurement), {}
        for cell in joint([*queries, *others])[2]:
            column = tuple(query.at(cell) for query in queries)
            if column not in known:
                product = list(map(int.__mul__, times, column))
                if rows:
                    product = [sum(map(int.__mul__, row, column)) for row in rows]
                known[column] = [value * multiple for value in product]
            yield cell, known[column]

    def costs(self, measurement, *others):
        """(cell, units of μ² that the measurement costs there)."""
        factor = Fraction(self.rows**2 * 2**40, 4 ** measurement["bits"])
        if "limit" in measurement or "drawn" in measurement:  # the latter was charged before
            for cell in joint(others)[2]:
                yield cell, math.ceil(int(measurement.get("limit", 0)) * factor)
            return
        if "sets" not in measurement:
            for cell, rows, persons in self.parted(2, measurement, *others):
                yield cell, math.ceil((norm(rows) + Fraction(persons, self.rows**2)) * factor)
            return
        squares = {
            name: sum(max(map(norm, zip(*rows, strict=True))) for rows in depths(form))
            for name, form in measurement["factors"].items()
        }
        each = [math.prod(squares[name] for name in names) for names in measurement["sets"]]
        bound = sum(c * c * s for c, s in zip(integers(measurement["multipliers"]), each, strict=True))
        for cell in joint(others)[2]:
            yield cell, math.ceil(bound * factor)

    def factors(self, measurement):
        """The matrices of a product, in the order of the domain."""
        if measurement["product"].keys() != set(self.names):
            raise ValueError("a product of strategies has a factor for each attribute")
        found = [matrix(measurement["product"][name]) for name in self.names]
        for name, rows in zip(self.names, found, strict=True):
            if len(rows[0]) != self.levels.setdefault(name, len(rows[0])):
                raise ValueError(f"{name} has another number of levels")
        return found

    def parted(self, power, measurement, *others):
        """(cell, column of what counts rows, what one person adds to counts of persons, to some power)."""
        flags = ["persons" in query for query in measurement.get("queries", ())]
        if not any(flags):
            yield from ((cell, column, 0) for cell, column in self.columns(measurement, *others))
            return
        found = [
            (cell, [one for one, flag in zip(column, flags, strict=True) if not flag],
             sum(one**power for one, flag in zip(column, flags, strict=True) if flag))
            for cell, column in self.columns(measurement, *others)
        ]  # fmt: skip
        multiple = whole(measurement["multiple"])
        each = (multiple * times for times, flag in zip(times_of(measurement), flags, strict=True) if flag)
        most, all_of = self.rows * max(persons for *_, persons in found), sum(one**power for one in each)
        for cell, rows, persons in found:
            yield cell, rows, all_of if all_of < most else self.rows * persons

    def laplace(self, measurement):
        """ε of a release with Laplace noise."""
        if "product" in measurement:
            columns = (zip(*rows, strict=True) for rows in self.factors(measurement))
            most = math.prod(max(sum(map(abs, column)) for column in each) for each in columns)
            return self.rows * most / steps(measurement)
        found = list(self.parted(1, measurement))
        most = self.rows * max(sum(map(abs, rows)) for _, rows, _ in found)
        return (most + max(persons for *_, persons in found)) / steps(measurement)
