"""What may be asked is asked as meant: conditions, aggregates, groups, names, numbers, sizes."""

from __future__ import annotations

import numpy as np
import pytest

from laprasdp.errors import UnsupportedQuery
from laprasdp.limits import MAX_DEPTH, MAX_LENGTH
from laprasdp.queries.attribute import Bins, Booleans, Categories, Dates, Integers
from laprasdp.queries.domain import Domain
from laprasdp.queries.marginal import Marginal
from laprasdp.queries.query import Query
from laprasdp.sql import parse

DOMAIN = Domain(
    {
        "age": Integers(0, 9, nullable=True),
        "Income": Bins([0, 10, 20.5, 50]),
        "hours": Bins([0, 40, 100], whole=True),
        "sex": Categories(["Male", "Female"]),
        "town": Categories(["Žilina", "Brno"], other=True, nullable=True),
        "born": Dates("2024-01-01", "2024-01-31", nullable=True),
        "date": Dates("2024-01-01", "2024-12-31", step="month"),
        "flag": Booleans(nullable=True),
        'odd "name"': Booleans(),
        "big": Integers(0, 999_999),
    }
)


def ask(text: str):
    return parse(text, DOMAIN, "people")


def where(condition: str) -> Query:
    (query,) = ask(f"SELECT COUNT(*) FROM people WHERE {condition}").queries
    return query


def ages(*levels: int) -> Query:
    return Query(DOMAIN, {"age": [level in levels for level in range(11)]}, {0: 0, 1: 1})


# ---- what a condition means -------------------------------------------------------------------------------

MEANT = {
    "age BETWEEN 3 AND 5": ages(3, 4, 5),
    "5 BETWEEN age AND 7": ages(0, 1, 2, 3, 4, 5),
    "NOT (age < 3 OR age > 5)": ages(3, 4, 5),
    "3 <= age AND 5 >= age": ages(3, 4, 5),
    "age IN (3, 4, 5.0, 99, NULL)": ages(3, 4, 5),
    "age NOT IN (1, NULL)": Query.constant(DOMAIN, 0),
    "age IS NULL": ages(10),
    "age ISNULL OR age = 1": ages(1, 10),
    "(age = 3) IS NULL": ages(10),
    "(age = 3) IS NOT TRUE": ages(0, 1, 2, 4, 5, 6, 7, 8, 9, 10),
    "age IS DISTINCT FROM 3": ages(0, 1, 2, 4, 5, 6, 7, 8, 9, 10),
    "age IS NOT DISTINCT FROM NULL": ages(10),
    "NULL IS NOT DISTINCT FROM age": ages(10),
    "age = NULL": Query.constant(DOMAIN, 0),
    "NOT (age = NULL)": Query.constant(DOMAIN, 0),
    "age = - -3": ages(3),
    "age < 2.5 AND age > -1e0": ages(0, 1, 2),
    "1 = 1": Query.constant(DOMAIN, 1),
    "'a' > 'b'": Query.constant(DOMAIN, 0),
    "((age)) = ((3))": ages(3),
    "people.age = 3 -- it's three": ages(3),
    'PEOPLE."age" = /* three */ 3': ages(3),
    "AGE = 3": ages(3),
    'income < 20.5 AND "Income" >= 10': Query.count(DOMAIN, Income="[10, 20.5)"),
    "sex LIKE '%male'": Query.count(DOMAIN, sex="Female"),
    "sex LIKE 'M!ale' ESCAPE '!'": Query.count(DOMAIN, sex="Male"),
    "sex > 'Female'": Query.count(DOMAIN, sex="Male"),
    "town IN ('Brno')": Query.count(DOMAIN, town="Brno"),
    "born = DATE '2024-01-02'": Query.count(DOMAIN, born="2024-01-02"),
    "CAST('2024-01-02' AS date) = born": Query.count(DOMAIN, born="2024-01-02"),
    "date < '2024-02-01'": Query.count(DOMAIN, date="2024-01-01"),
    "hours <= 39": Query.count(DOMAIN, hours="[0, 40)"),
    "flag": Query.count(DOMAIN, flag=True),
    "NOT flag": Query.count(DOMAIN, flag=False),
    "flag IS NOT TRUE": Query.count(DOMAIN, flag=[False, None]),
    'flag >= FALSE AND "odd ""name"""': Query.count(DOMAIN, **{"flag": [False, True], 'odd "name"': True}),
}


@pytest.mark.parametrize(("condition", "expected"), MEANT.items())
def test_conditions(condition, expected):
    assert where(condition) == expected


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("SELECT SUM(age) FROM people", [*range(10), 0]),
        ("SELECT sum(people.age) AS total FROM people WHERE age > 7", [0] * 8 + [8, 9, 0]),
        ("SELECT COUNT(age) FROM people", [1] * 10 + [0]),
        (
            "SELECT COUNT(ALL age) FILTER (WHERE age <> 3) FROM people p WHERE p.age <> 4",
            [1, 1, 1, 0, 0, *[1] * 5, 0],
        ),
        ("SELECT COUNT(CASE WHEN age > 8 THEN 'x' END) FROM people", [0] * 9 + [1, 0]),
        ("SELECT SUM(CASE WHEN age < 2 THEN 5 WHEN age < 4 THEN -age END) FROM people", None),
        (
            "SELECT SUM(CASE WHEN age < 2 THEN 5 WHEN age < 4 THEN age ELSE -1 END) FROM people",
            [5, 5, 2, 3, *[-1] * 7],
        ),
        ("SELECT SUM(CASE WHEN age < 2 THEN NULL ELSE 2.0 END) FROM people", [0, 0, *[2] * 9]),
        ("SELECT SUM(age >= 8) FROM people", [0] * 8 + [1, 1, 0]),
        ("SELECT (COUNT('x')) FROM people WHERE age IS NULL;", [0] * 10 + [1]),
    ],
)
def test_aggregates(text, levels):
    if levels is None:
        with pytest.raises(UnsupportedQuery, match="-age is not supported"):
            ask(text)
        return
    (query,) = ask(text).queries
    rows = np.arange(11)
    assert [query.answer(Marginal({0: rows[n : n + 1]}, np.ones(1, dtype=np.int64))) for n in rows] == levels


def test_the_statement_tells_text_and_name():
    assert ask("  SELECT COUNT(*) FROM people ;\n").text == "SELECT COUNT(*) FROM people ;"
    assert ask("SELECT COUNT(*) FROM people").aggregate == "count"
    assert ask('SELECT SUM(age) AS "Total Age" FROM "people"').aggregate == "Total Age"
    assert ask("select sum(age) from PEOPLE").aggregate == "sum"
    assert ask("SELECT COUNT(*) FROM people").by == ()
    assert ask("SELECT COUNT(*) FROM people").groups == ()


# ---- groups -----------------------------------------------------------------------------------------------


def test_every_declared_group_is_there():
    asked = ask("SELECT flag, sex, COUNT(*) n FROM people WHERE age < 5 AND sex = 'Male' GROUP BY 1, SEX")
    assert asked.by == ("flag", "sex")
    assert asked.groups == tuple((flag, sex) for flag in (False, True, None) for sex in ("Male", "Female"))
    assert asked.aggregate == "n"
    assert asked.queries[0] == Query.count(DOMAIN, flag=False, sex="Male", age=range(5))
    assert asked.queries[4] == Query.count(DOMAIN, flag=None, sex="Male", age=range(5))
    assert asked.queries[1] == asked.queries[5] == Query.constant(DOMAIN, 0)


def test_groups_of_a_sum_and_of_a_column_that_weighs():
    asked = ask("SELECT age, SUM(age) FROM people GROUP BY age")
    assert [q.sensitivity for q in asked.queries] == [*range(10), 0]
    assert asked.groups[-1] == (None,)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("", ["Žilina", "Brno", "(other)", None]),
        ("ORDER BY town", ["Brno", "Žilina", "(other)", None]),
        ("ORDER BY 1 DESC", ["(other)", "Žilina", "Brno", None]),
        ("ORDER BY town DESC NULLS FIRST", [None, "(other)", "Žilina", "Brno"]),
        ("ORDER BY people.town ASC NULLS FIRST", [None, "Brno", "Žilina", "(other)"]),
    ],
)
def test_order(order, expected):
    asked = ask(f"SELECT town, COUNT(*) FROM people GROUP BY town {order}")
    assert [label for (label,) in asked.groups] == expected
    for (label,), query in zip(asked.groups, asked.queries, strict=True):
        assert query == Query.count(DOMAIN, town=[label])


def test_order_by_two_keys():
    asked = ask("SELECT COUNT(*) FROM people GROUP BY flag, sex ORDER BY sex, flag DESC")
    assert asked.groups[:4] == ((True, "Female"), (False, "Female"), (None, "Female"), (True, "Male"))


# ---- names, numbers, sizes ---------------------------------------------------------------------------------


def test_comments_never_swallow_the_meaning():
    assert where("age = 3 -- AND flag\n AND sex = 'Male'") == where("age = 3 AND sex = 'Male'")
    assert where("age = 3 -- AND flag\r AND sex = 'Male'") == where("age = 3 AND sex = 'Male'")
    assert where("age = 3 /* a /* b */ OR flag */ AND sex = 'Male'") == where("age = 3 AND sex = 'Male'")
    with pytest.raises(UnsupportedQuery, match="declared value"):
        where("sex = '-- Male'")
    with pytest.raises(UnsupportedQuery, match="structs"):
        where("age = 3 {# OR flag #}")


def test_aliases_and_names_of_the_table():
    assert ask("SELECT COUNT(*) FROM People p WHERE P.age = 3").queries[0] == ages(3)
    assert ask('SELECT COUNT(*) FROM people AS "P" WHERE "P".age = 3').queries[0] == ages(3)
    for text in ('"P" WHERE p.age = 3', "p WHERE people.age = 3", 'p WHERE "P".age = 3'):
        with pytest.raises(UnsupportedQuery, match="is not the table of this statement"):
            ask(f"SELECT COUNT(*) FROM people AS {text}")
    strange = parse('SELECT COUNT(*) FROM "my ""table"" \\" WHERE age = 3', DOMAIN, 'my "table" \\')
    assert strange.queries[0] == ages(3)


def test_numbers_agree_with_a_double_beside_them():
    assert where("0.1 = 1e-1") == Query.constant(DOMAIN, 1)
    assert where("age = 3.00000000000000000001") == Query.constant(DOMAIN, 0)
    assert where("age IN (3.00000000000000000001, 7e0)") == ages(3, 7)
    assert where("age = 3.0000000000000000000000000000000000000001") == ages(3)
    assert where("age < 123456789012345678901234567890123456789012345") == where("age IS NOT NULL")


def test_long_and_deep_statements():
    assert where(" OR ".join(f"age = {n % 10}" for n in range(2000))) == where("age IS NOT NULL")
    deep = MAX_DEPTH - 1
    assert where("(" * deep + "age = 3" + ")" * deep) == ages(3)
    for condition in ("(" * 5000 + "flag" + ")" * 5000, "NOT " * 9000 + "flag", "age = " + "- " * 9000 + "1"):
        with pytest.raises(UnsupportedQuery, match="nested too deeply"):
            where(condition)
    with pytest.raises(UnsupportedQuery, match=r"100,0.. characters; the limit is 100,000"):
        ask("SELECT COUNT(*) FROM people".ljust(MAX_LENGTH) + " WHERE flag")


def test_sizes_are_checked_before_anything_is_allocated():
    with pytest.raises(UnsupportedQuery, match=r"tells 33,000,000 classes of cells apart.*coarsen big"):
        ask(
            "SELECT SUM(big) FROM people WHERE "
            + " OR ".join(f"(age = {n} AND flag)" for n in range(10))
            + " OR big < 0"
        )


def test_no_pattern_is_slow():
    """Forty wildcards on a long value: tried in every way this would outlast the test run."""
    domain = Domain(name=Categories(["a" * 300, "b"]))
    (query,) = parse(f"SELECT COUNT(*) FROM t WHERE name LIKE '{'%a' * 40}b'", domain, "t").queries
    assert query == Query.constant(domain, 0)
    (query,) = parse(f"SELECT COUNT(*) FROM t WHERE name LIKE '{'%a_' * 40}%'", domain, "t").queries
    assert query == Query.count(domain, name="a" * 300)
