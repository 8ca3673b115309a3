"""Every column type with values on its edges, and every way to write a constant beside it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

from laprasdp.queries.attribute import Attribute, Bins, Booleans, Categories, Dates, Integers

WHOLE = {
    **{name: (-(2 ** (b - 1)), 2 ** (b - 1) - 1) for name, b in
       {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}.items()},
    **{name: (0, 2**b - 1) for name, b in
       {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64, "UHUGEINT": 128}.items()},
}  # fmt: skip
LARGE = [2**7, 2**24, 2**31, 2**53, 2**63, 2**64, 2**100]
DECIMALS = [
    "DECIMAL(4,1)",
    "DECIMAL(9,2)",
    "DECIMAL(15,3)",
    "DECIMAL(18,3)",
    "DECIMAL(38,10)",
    "DECIMAL(38,0)",
]
TIMES = ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"]
CASES = ["ab", "Ab", "AB", "b", "ž", "a", "", "ab "]
UUIDS = [
    "00000000-0000-0000-0000-000000000001",
    "7fffffff-ffff-ffff-ffff-ffffffffffff",
    "80000000-0000-0000-0000-000000000000",
    "abcdef00-0000-0000-0000-00000000000a",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
]


@dataclass(frozen=True)
class Case:
    """A column of one type, declared in one way, with values inside the domain and constants for it."""

    type: str
    attribute: Attribute
    values: list[str]  # as SQL spells them
    constants: list[str]

    @property
    def numeric(self) -> bool:
        """Whether the column holds numbers."""
        return isinstance(self.attribute, Integers | Bins)

    @property
    def name(self) -> str:
        spelled = self.attribute.settings()
        shown = "…".join(str(spelled[k]) for k in ("min", "max") if k in spelled) or spelled.get("step", "")
        return f"{self.type.split('(')[0]}-{spelled['type']}{'-whole' * bool(spelled.get('whole'))}-{shown}"


def decimal(number: Fraction, places: int = 12) -> str:
    """A number that has a finite decimal form, as SQL spells it."""
    sign, units = "-" if number < 0 else "", abs(number) * 10**places
    assert units.denominator == 1
    text = str(units.numerator).rjust(places + 1, "0")
    text = f"{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".")
    return sign + (text or "0")


def numbers(around: int) -> list[str]:
    """Ways to write numbers near a whole one: plain, signed, decimal, with an exponent, very long."""
    near = [around + n for n in (-2, -1, 0, 1, 2)]
    texts = [str(n) for n in near]
    texts += [f"{n}.0" for n in near[1:4]] + [f"{n}.5" for n in near[1:3]] + [f"{n}e0" for n in near]
    texts += [f"{n}.00000000000000000000" for n in near[1:4]] + [f"{n}.1E1" for n in near[2:3]]
    texts += [f"+{n}" for n in near[2:3] if n >= 0] + [f"0{n}" for n in near[2:3] if n >= 0]
    texts += [f"({n})" for n in near[2:3]] + [f"{n}.0000000000000000000000000000000000001" for n in near[2:3]]
    return texts


NUMBERS = [
    *(
        "0.7",
        "7e-1",
        ".7",
        "0.70",
        "0.1",
        "1e-1",
        "0.25",
        "25e-2",
        "0.30000000000000004",
        "3e-1",
        "-0.7",
        "-7e-1",
    ),
    *(
        "0.1234567890123456789",
        "16777217.5",
        "1e300",
        "-1e300",
        "1e38",
        "1e39",
        "3.4028235e38",
        "1e-40",
        "NULL",
    ),
    *("99999999999999999999999999999999999999", "170141183460469231731687303715884105727", "0.1e0", "1e-300"),
    *(
        "170141183460469231731687303715884105728",
        "340282366920938463463374607431768211456",
        "9007199254740993.0",
    ),
    *("-170141183460469231731687303715884105728", "-99999999999999999999999999999999999999.0", "1_0", "1."),
    *("100000000000000000000", "-100000000000000000000", "1234567890123456789012.25", "'1'", "TRUE"),
    *(
        "DATE '2024-01-01'",
        "123456789.123456789",
        "12345678901234567.5",
        "0.000000000000000000000000000000000001",
    ),
]


def whole_cases() -> list[Case]:
    found = []
    for kind, (low, high) in WHOLE.items():
        for middle in [0, *LARGE, *(-n for n in LARGE), low + 3, high - 3]:
            inside = [n for n in range(middle - 3, middle + 4) if low <= n <= high]
            if inside and abs(middle) < 2**126:
                declared = Integers(inside[0], inside[-1], nullable=True)
                found.append(Case(kind, declared, list(map(str, inside)), numbers(middle) + NUMBERS))
        edges = sorted(
            {n for n in [low, -(2**53), -(2**24), 0, 2**7, 2**24, 2**53, 2**62, high] if low <= n <= high}
        )
        edges = [n for n in edges if abs(n) <= 2**100]
        values = sorted({n + d for n in edges for d in (-1, 0, 1) if edges[0] <= n + d < edges[-1]})
        constants = [text for n in edges for text in numbers(n)] + NUMBERS
        for whole in (True, False):
            declared_bins = Bins(edges if whole else [float(n) for n in edges], whole=whole, nullable=True)
            if [int(edge) for edge in declared_bins.edges] == edges:
                found.append(Case(kind, declared_bins, list(map(str, values)), constants))
    return found


def decimal_cases() -> list[Case]:
    found = []
    for kind in DECIMALS:
        digits, scale = map(int, kind[8:-1].split(","))
        unit = Fraction(1, 10**scale)
        tenth = max(unit, Fraction(1, 10))
        edges = [Fraction(-5), Fraction(0), *([Fraction(7, 10)] if scale else []), Fraction(5), Fraction(50)]
        values = sorted(
            {e + d * unit for e in edges for d in (-1, 0, 1) if edges[0] <= e + d * unit < edges[-1]}
        )
        spelled = [decimal(v) for v in values]
        constants = [text for n in (-5, 0, 5, 50) for text in numbers(n)] + NUMBERS
        constants += [decimal(e + d * tenth) for e in edges for d in (-1, 0, 1)]
        bins = Bins([float(e) for e in edges], nullable=True)
        found.append(Case(kind, bins, spelled, constants))
        found.append(Case(kind, Integers(-3, 3, nullable=True), list(map(str, range(-3, 4))), constants))
        large = 10 ** (digits - scale) - 4
        near = list(map(str, range(large - 3, large + 4)))
        found.append(
            Case(kind, Integers(large - 3, large + 3, nullable=True), near, numbers(large) + NUMBERS)
        )
    return found


def float_cases() -> list[Case]:
    found = []
    for kind, bits in (("FLOAT", 24), ("DOUBLE", 53)):
        edges = [-1.5, 0.0, 0.1, 0.7, 1.0, 2.0**bits, 1e30]
        values = [
            "-1.5",
            "-1e-40",
            "0",
            "0.1",
            "0.7",
            "7e-1",
            "0.30000000000000004",
            "0.25",
            "0.99999994",
            "1",
        ]
        values += [f"{2**bits + d}" for d in (-2, -1, 0, 2)] + ["1e29", "0.0999999", "0.6999999", "1e20"]
        constants = numbers(0) + numbers(1) + numbers(2**bits) + numbers(2**24) + NUMBERS
        found.append(Case(kind, Bins(edges, nullable=True), values, constants))
        for middle in (0, 2**24, 2**53, -(2**53), -(2**24)):
            declared = Integers(middle - 3, middle + 3, nullable=True)
            inside = [n for n in range(middle - 3, middle + 4) if kind == "DOUBLE" or abs(n) <= 2**24 + 8]
            spelled = [str(n) for n in inside if n % 2 == 0 or abs(n) <= 2**bits]
            if kind == "FLOAT" and middle in (2**53, -(2**53)):
                spelled = [str(middle)]
            found.append(Case(kind, declared, spelled, numbers(middle) + NUMBERS))
        whole = Bins([-5, 0, 2**24 + 2, 2**53 + 2], whole=True, nullable=True)
        some = ["-5", "-1", "0", "16777216", "16777218", *(["9007199254740992"] if kind == "DOUBLE" else [])]
        found.append(Case(kind, whole, some, numbers(0) + numbers(2**24) + numbers(2**53) + NUMBERS))
    return found


def date_cases() -> list[Case]:
    days = ["2024-01-30", "2024-01-31", "2024-02-01", "2024-02-02", "2024-02-15", "2024-03-01"]
    clock = ["00:00:00", "00:00:01", "12:00:00", "23:59:59"]
    constants = [f"'{day}'" for day in [*days, "1999-12-31", "2030-01-01", "1600-01-01", "2500-01-01"]]
    constants += [f"DATE '{day}'" for day in days[:3]] + [f"CAST('{day}' AS DATE)" for day in days[1:2]]
    constants += [
        f"{word}'{day} {time}'" for word in ("", "TIMESTAMP ") for day in days[1:3] for time in clock
    ]
    constants += [
        "'2024-01-31 23:59:59.5'",
        "TIMESTAMP '2024-01-31 23:59:59.999999'",
        "'2024-01-31T12:00:00'",
    ]
    constants += [
        "TIMESTAMP '2024-02-01'",
        "'2024-01-31 23:59:59.999'",
        "NULL",
        "5",
        "'x'",
        "TRUE",
        "'2024-1-31'",
    ]
    constants += [
        "TIMESTAMP '2500-01-01 00:00:00'",
        "'2024-02-01 00:00'",
        "'2024-02-01 00:00:00+02'",
        "+'2024-02-01'",
    ]
    found = []
    for kind in ["DATE", *TIMES]:
        values = days if kind == "DATE" else [f"{day} {time}" for day in days for time in clock]
        values = values + ([] if kind in ("DATE", "TIMESTAMP_S") else ["2024-01-31 23:59:59.5"])
        values = values + (["2024-01-31 23:59:59.999999"] if kind == "TIMESTAMP" else [])
        for step in (1, "month"):
            declared = Dates("2024-01-01", "2024-03-31", step=step, nullable=True)
            found.append(Case(kind, declared, [f"'{value}'" for value in values], constants))
    return found


def text_cases() -> list[Case]:
    def quoted(texts: list[str]) -> list[str]:
        return ["'" + text.replace("'", "''") + "'" for text in texts]

    odd = ["NULL", "5", "TRUE", "DATE '2024-01-01'", "'zzz'", "+'ab'"]
    constants = quoted(CASES) + odd
    plain = Categories(CASES, nullable=True)
    listed = "ENUM('b','a','ab','Ab','AB','ž','','ab ')"
    found = [Case(kind, plain, quoted(CASES), constants) for kind in ("VARCHAR", "CHAR(5)", listed)]
    found += [
        Case(f"VARCHAR COLLATE {name}", plain, quoted(CASES), constants) for name in ("NOCASE", "NOACCENT")
    ]
    spelled = quoted([*UUIDS, UUIDS[3].upper(), UUIDS[3].replace("-", ""), "{" + UUIDS[3] + "}"]) + odd
    found.append(Case("UUID", Categories([*UUIDS, UUIDS[3].upper()], nullable=True), quoted(UUIDS), spelled))
    found.append(Case("BOOLEAN", Booleans(nullable=True), ["TRUE", "FALSE"],
                      ["TRUE", "FALSE", "NULL", "1", "0", "'true'", "+TRUE", "1.0", "'x'"]))  # fmt: skip
    return found


def cases() -> list[Case]:
    return [*whole_cases(), *decimal_cases(), *float_cases(), *date_cases(), *text_cases()]


def conditions(case: Case) -> list[str]:
    """Every comparison with every constant; BETWEEN and IN with every pair of a few."""
    found = []
    columns = ["v", "CAST(v AS DATE)"] if isinstance(case.attribute, Dates) else ["v"]
    for column in columns:
        for op, one in itertools.product(["=", "<>", "<", "<=", ">", ">="], case.constants):
            found += [f"{column} {op} {one}", f"{one} {op} {column}"]
        for one in case.constants:
            found += [
                f"{column} IN ({one})",
                f"{column} NOT IN ({one}, NULL)",
                f"{column} IS DISTINCT FROM {one}",
            ]
            found += [f"{column} IS NOT DISTINCT FROM {one}", f"{one} BETWEEN {column} AND {one}"]
            found += [f"{column} LIKE {one}", f"{column} NOT LIKE {one} ESCAPE '!'"]
        few = case.constants[:: max(1, len(case.constants) // 12)]
        for one, two in itertools.product(few, few):
            found += [f"{column} BETWEEN {one} AND {two}", f"{column} IN ({one}, {two})"]
            found += [f"{column} NOT BETWEEN {one} AND {two}"]
        found += [f"{column} IS NULL", f"{column} IS NOT NULL", f"+{column} = {case.constants[0]}"]
    found += [
        f"{one} {op} {two}" for one, two in itertools.pairwise(case.constants) for op in ("=", "<", ">=")
    ]
    return found
