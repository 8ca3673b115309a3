"""One ledger, gone through entry by entry: what of each does not follow from those before it."""

import math
import re
from fractions import Fraction

from ledger_forms import (
    CLASSES,
    LAWS,
    ONE_BY_ONE,
    PRIMM,
    SOURCES,
    Function,
    delta_of,
    depths,
    integers,
    joint,
    matrix,
    noise_law,
    steps,
    times_of,
    wants,
    whole,
    whole_noise,
)
from ledger_meaning import Meaning


def joined(old, new):
    """The mean of two answers by inverse variances: value, variance, law and parts of its error."""
    share = old[1] / (old[1] + new[1])  # of the new one
    variance = share * new[1]
    laplace = [(part**2 * one[1]) ** 2 / one[3] for one, part in ((old, 1 - share), (new, share))
               if one[2] != "gaussian"]  # fmt: skip
    law, parts = ("laplace", variance**2 / sum(laplace)) if laplace else ("gaussian", 1.0)
    return (1 - share) * old[0] + share * new[0], variance, law, parts


class Replay(Meaning):
    def __init__(self, settings):
        super().__init__(settings)
        self.basic, self.policy = settings["accounting"] == "basic", settings["policy"]
        self.pays, self.horizon = settings["reading"]["repeats"] == "pay", settings["horizon"]
        self.budget, self.shown, self.owed, self.draws = settings["budget"], {}, False, 0
        self.fresh = {}  # answers of the queries that the last release measured one by one
        self.spent = Function({}, [], [0])  # units of μ² on each cell
        self.epsilon = self.delta = 0  # units, under basic accounting
        self.whole, self.drawn = None, set()  # a release whose nodes are drawn later, and those that were
        self.fitted = {}  # values by what they were fitted to
        self.pure, self.turn = None, None  # the budget that pure releases took; stamp of the last release

    def look(self, entry):
        """What is wrong with the next entry."""
        kind, owed, turn, fresh, self.fresh = entry["kind"], self.owed, self.turn, self.fresh, {}
        held = entry.get("measurement", entry)
        grouped, again, counted = "groups" in held, "again" in entry, whole_noise(entry)
        fitted = any(one and "fitted" in one for one in entry.get("answers", ()))
        persons = any("persons" in query for query in held.get("queries", ()))
        marks = (grouped, again, counted, fitted, persons, "times" in held, "product" in held)
        stated = max((number for number, mark in enumerate(marks, start=2) if mark), default=1)
        names = ["stamp", kind, *(["version"] if stated > 1 else []), *(["again"] if again else [])]
        if kind in ("reply", "refusal"):
            names.append("groups" if grouped else "queries")
        wants(entry, *names)
        if entry.get("format", 1) != stated:
            raise ValueError(
                "this script knows format 2 of what holds groups, 3 of what is measured again, 4 of noise on "
                "the whole numbers, 5 of fitted values, 6 of what counts persons, 7 of what measures "
                "queries several times, and 8 of a product of strategies"
            )
        if again and not (kind == "reply" and entry["again"] and entry["measured"]):
            yield "it was not measured again"
        stamp = entry["at"], entry["analyst"], entry["statement"]
        self.owed = kind == "release" and not entry["opening"]
        self.turn = stamp if kind == "release" else None
        if not re.fullmatch(r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}(\.\d{6})?\+00:00", entry["at"]):
            yield "its time is none in UTC"
        if owed != (kind == "reply" and entry["measured"]):
            yield "a release and the reply that it was made for do not stand together"
        if turn not in (None, stamp):
            yield "it is of another statement, analyst or time than the release before it"
        if kind == "release":
            yield from self.release(entry)
        elif kind == "reply":
            yield from self.reply(entry, fresh)
        elif kind == "raise":
            yield from self.raised(entry)
        else:
            self.asked(entry)

    def reply(self, entry, measured):
        """Each answer is possible, is the one given before, and is what was measured if that is one row."""
        for query, answer in zip(self.asked(entry), entry["answers"], strict=True):
            if (answer is not None) != any(query.weights):
                yield "an answer is null exactly where a query is 0 on every cell"
            if answer is None:
                continue
            wants(answer, "answer", *(["fitted"] if "fitted" in answer else []))
            possible = answer["source"] in SOURCES and answer["law"] in LAWS
            if not possible or not answer["variance"] > 0 or not answer["parts"] > 0.999:
                yield "no answer has such a variance, law or source"
            key, said = query.key, tuple(map(answer.get, ("value", "variance", "law", "parts")))
            before, self.shown[key] = self.shown.get(key), said
            fitted = answer.get("fitted", answer["value"])
            lifted, most = fitted == 0 and answer["value"] < 0, answer["variance"] ** 0.5
            if not lifted and abs(fitted - answer["value"]) > most + 1e-9 * (1 + abs(answer["value"])):
                yield "its fitted value is more than one standard deviation away"
            if self.fitted.get((key, said), answer.get("fitted")) != answer.get("fitted") and not self.pays:
                yield "it shows another fitted value than before"
            if "fitted" in answer:
                self.fitted[key, said] = fitted
            if before is None and answer["source"] == "replay":
                yield "it shows an answer again that was not shown before"
            known = before not in (None, said) and (not self.pays or answer["source"] == "replay")
            again = entry.get("again", False)
            if known and not again:
                yield "it shows another answer to the same query than before"
            repeated = before and not self.pays and not again
            if answer["source"] == "measured" and (not entry["measured"] or repeated):
                yield "it shows as measured what was not measured for it"
            elif answer["source"] == "measured" and self.policy in ONE_BY_ONE:
                due = measured.get(key)
                if again and not before and self.policy not in ("independent", "laplace"):
                    continue  # it may be joined to what least squares gave before
                if again and before and due:
                    due = joined(before, due)
                pairs = [(due[place], said[place]) for place in (0, 1, 3)] if due else ()
                near = all(abs(a - b) <= 1e-9 * (1 + abs(a)) for a, b in pairs)
                if not due or due[2] != said[2] or not near:
                    yield "its answer is not what was measured"

    def measured(self, measurement, noisy):
        """Value, variance, law and parts of each query that a release measured by itself."""
        bits, laplace = measurement["bits"], measurement["law"] == "laplace"
        multiple, law = whole(measurement["multiple"]), noise_law(measurement)
        variance, step = Fraction(4**bits, multiple**2), Fraction(2**bits, multiple)
        if laplace:  # the variance of discrete Laplace noise, in steps of the grid
            variance = 1 / (2 * math.sinh(0.5 / float(steps(measurement))) ** 2) / multiple**2
        step /= 2 ** (bits if laplace else 52)
        queries, noisy = self.asked(measurement), integers(noisy)
        times = times_of(measurement) if "times" in measurement else [1] * len(queries)
        return {
            query.key: (float(value * step / often), float(variance / often**2),
                        "laplace" if law == "geometric" and often > 1 else law, 1.0)
            for query, value, often in zip(queries, noisy, times, strict=True)
        }  # fmt: skip

    def raised(self, entry):
        old, new = entry["old"], entry["new"]
        wants(old, "budget")
        wants(new, "budget")
        more = [new[key] - old[key] for key in new]
        if old != self.budget or min(more) < 0 or not max(more) > 0 or not new["delta"] < 1:
            yield "it is no raise of the budget"
        self.budget = new

    def release(self, entry):
        charge, measurement = entry["charge"], entry["measurement"]
        wants(charge, "basic" if self.basic else "gaussian")
        rows = self.part(measurement) if "drawn" in measurement else self.strategy(measurement)
        allowance = whole(entry["allowance"])
        self.draws += charge["draws"]
        if len(integers(entry["noisy"])) != rows or charge["draws"] != rows:
            yield "it has more or fewer noisy values than it was charged for"
        if max(map(abs, integers(entry["noisy"]))) >= 2**160:
            yield "it has a noisy value that no table gives"
        if (allowance == 0) != (self.policy in PRIMM):
            yield "its allowance is none that this policy gives"
        if not entry["opening"] and "multiple" in measurement:
            self.fresh = self.measured(measurement, entry["noisy"])
        if self.basic:
            self.epsilon += whole(charge["epsilon"])
            self.delta += whole(charge["delta"])
            if not self.bought(charge, measurement):
                yield "its noise is too small for its charge"
            spendable = Fraction(self.budget["delta"]) * (1 - Fraction(1e-12)) * 2**100
            share = 0 if measurement["law"] == "laplace" else int(spendable) // (self.horizon + 1)
            if (whole(charge["epsilon"]), whole(charge["delta"])) != (allowance, share):
                yield "it is not charged what it was allowed"
        else:
            amounts, pure = self.function(charge["amounts"]), charge["pure"]
            if pure != (measurement["law"] == "laplace"):
                yield "it is charged as if it had another noise"
            elif pure and self.laplace(measurement) > self.units_left():
                yield "its noise is too small for the budget"
            elif pure and not self.all_of_it(amounts.weights, self.spent.weights):
                yield "it is pure, but is not charged everything that is left"
            elif not pure and any(amounts.at(at) != cost for at, cost in self.costs(measurement, amounts)):
                yield "its charge is not what its measurement costs"
            if (self.pure and not pure) or (pure and not self.pure and any(self.spent.weights)):
                yield "a pure release has all of the budget, and stands beside pure ones only"
            dear = self.policy not in PRIMM and not pure and max(amounts.weights) > allowance
            if dear or allowance < 0 or not self.within(allowance):
                yield "it costs more than it was allowed"
            self.pure = self.budget if pure else self.pure
            self.add(amounts)
        if not self.fits():
            yield "the budget is passed"

    def strategy(self, measurement):
        """How many rows a measurement has, which is possible."""
        kind = "combined" if "matrix" in measurement else "one by one"
        kind = "marginals" if "sets" in measurement else "product" if "product" in measurement else kind
        whole_table = kind in ("marginals", "product")
        asked = [] if whole_table else ["groups" if "groups" in measurement else "queries"]
        more = {"scale_bits": "finer", "times": "several times"}
        wants(measurement, "noise", kind, *asked, *(more[key] for key in more if key in measurement))
        laplace, scale = measurement["law"] == "laplace", whole(measurement["scale"])
        if "scale_bits" in measurement and not (0 < measurement["scale_bits"] <= 52 and scale % 2):
            raise ValueError("a scale has another spelling")
        if (not laplace and measurement["law"] != "gaussian") or not 0 <= measurement["bits"] <= 52:
            raise ValueError("there is no such noise or grid")
        if not (0 < scale <= 2**52 if laplace else steps(measurement) == 0) or (
            (laplace and kind not in ("one by one", "product")) or (kind == "product" and not laplace)
        ):
            raise ValueError("there is no such scale of noise")
        if kind == "product":
            return math.prod(map(len, self.factors(measurement)))
        if kind == "marginals":
            factors = {name: depths(form) for name, form in measurement["factors"].items()}
            centred = not any(sum(row) for trees in factors.values() for rows in trees for row in rows)
            if not centred or min(integers(measurement["multipliers"])) < 1:
                raise ValueError("a factor is not centred, or a multiplier not positive")
            later = {name for name, form in measurement["factors"].items() if "depths" in form}
            if later and self.whole is not None:
                raise ValueError("a release that is drawn node by node was charged before")
            if later:
                self.whole = measurement
            at_once = [names for names in measurement["sets"] if not later.intersection(names)]
            return sum(math.prod(len(factors[name][0]) for name in names) for names in at_once)
        if kind == "combined":
            rows = matrix(measurement["matrix"])
            if len(rows[0]) != len(measurement["queries"]):  # groups are measured one by one
                raise ValueError("a matrix has not a column for each query")
            return len(rows)
        if whole(measurement["multiple"]) < 1:
            raise ValueError("a multiple is not positive")
        if "times" in measurement:
            times = times_of(measurement)
            if asked == ["groups"] or len(times) != len(measurement["queries"]):
                raise ValueError("something else is measured several times than each of the queries")
            if min(times) != 1 or not 1 < max(times) <= 2**42:
                raise ValueError("how many times queries are measured has another spelling")
        return len(self.asked(measurement)) if asked == ["groups"] else len(measurement["queries"])

    def part(self, measurement):
        """How many rows the nodes have that are drawn now, each for the first time, of what was charged."""
        if self.whole is None or measurement.keys() != {"bits", "law", "scale", "drawn"}:
            raise ValueError("nothing was charged that it is a part of")
        if any(measurement[key] != self.whole[key] for key in ("bits", "law", "scale")):
            raise ValueError("it has another grid or noise than what was charged")
        rows = 0
        for form in measurement["drawn"]:
            wants(form, "part")
            names, factors = form["set"], self.whole["factors"]
            long = [name for name in names if "depths" in factors[name]]
            if names not in self.whole["sets"] or not long:
                raise ValueError("what was charged has no such part")
            for nodes in matrix(form["nodes"]):
                if len(nodes) != len(long) or (*names, *nodes) in self.drawn:
                    raise ValueError("a part was drawn before")
                self.drawn.add((*names, *nodes))
                given = dict(zip(long, nodes, strict=True))
                rows += math.prod(
                    len(self.node(name, given[name])) if name in given else len(matrix(factors[name]))
                    for name in names
                )
        return rows

    def node(self, name, number):
        """The matrix of one node of a long attribute; nodes are numbered depth after depth."""
        trees = depths(self.whole["factors"][name])
        children = [len(rows[0]) for rows in trees]
        for depth, rows in enumerate(trees):
            count = -(-self.whole["factors"][name]["levels"] // math.prod(children[depth:]))
            if 0 <= number < count:
                return rows
            number -= count
        raise ValueError(f"{name} has no such node")

    def units_left(self):
        """The ε that no pure release has taken, which budgets have in whole units."""
        before = self.pure["epsilon"] if self.pure else 0.0
        units = [int(Fraction(epsilon) * 2**40) for epsilon in (self.budget["epsilon"], before)]
        return Fraction(units[0] - units[1], 2**40)

    def all_of_it(self, amounts, spent):
        """Whether each cell is charged all that is left of μ², in whole units, but a few of them."""
        whole_sum = amounts[0] + max(spent)
        return len(set(amounts)) == 1 and self.within(whole_sum) and not self.within(whole_sum + 10**5)

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
        return self.within(max(self.spent.weights))

    def within(self, units):
        """Whether so many units of μ² are in the budget."""
        spendable = self.budget["delta"] * (1 - 1e-12) * (1 + 1e-9)
        return units < 1 or delta_of(self.budget["epsilon"], math.sqrt(units / 2**40)) <= spendable

    def bought(self, charge, measurement):
        """Whether (ε, δ) of a charge pays for its noise, under basic accounting."""
        epsilon, delta = whole(charge["epsilon"]) / 2**40, whole(charge["delta"]) / 2**100
        if measurement["law"] == "laplace":
            return self.laplace(measurement) <= epsilon
        most = max(cost for _, cost in self.costs(measurement)) - 1  # it was rounded up
        return most <= 0 or delta_of(epsilon, math.sqrt(most / 2**40)) <= delta * (1 + 1e-9)
