"""What may not be asked is refused in one line that names it, and no text does anything else."""

from __future__ import annotations

import logging
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_parse import MEANT, ask, where

from laprasdp.errors import LaprasError, QuerySyntaxError, UnsupportedQuery

REFUSED = {
    "": "empty",
    ";": "begins with SELECT",
    "5": "begins with SELECT",
    "INSERT INTO people VALUES (1)": "INSERT",
    "update people SET age = 1": "UPDATE",
    "DELETE FROM people": "DELETE",
    "COPY people TO 'x'": "COPY",
    "ATTACH 'x'": "ATTACH",
    "PRAGMA x": "PRAGMA",
    "SET x = 1": "SET",
    "EXPLAIN SELECT COUNT(*) FROM people": "EXPLAIN",
    "WITH x AS (SELECT 1) SELECT COUNT(*) FROM people": "WITH",
    "FROM people": "FROM",
    "(SELECT COUNT(*) FROM people)": r"\(",
    "VALUES (1)": "VALUES",
    "SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people": "several statements",
    "SELECT COUNT(*) FROM people UNION SELECT 1": "UNION",
    "SELECT COUNT(*) FROM people INTERSECT SELECT 1": "INTERSECT",
    "SELECT COUNT(*) FROM people EXCEPT SELECT 1": "EXCEPT",
    "SELECT COUNT(*)": "without FROM.* people",
    "SELECT *": r"without FROM",
    "SELECT * FROM people": r"SELECT \*",
    "SELECT people.*, COUNT(*) FROM people": r"SELECT \*",
    "SELECT age FROM people": "SELECT age without an aggregate",
    "SELECT age, COUNT(*) FROM people": "age is selected but not in GROUP BY",
    "SELECT age AS a, COUNT(*) FROM people GROUP BY age": r"alias \(a\)",
    "SELECT COUNT(*), SUM(age) FROM people": "several aggregates",
    "SELECT COUNT(*) + 1 FROM people": r"COUNT\(\*\) \+ 1",
    "SELECT AVG(age) FROM people": r"AVG\(age\).*SUM and a COUNT",
    "SELECT MEDIAN(age) FROM people": r"MEDIAN\(age\)",
    "SELECT upper(sex) FROM people": r"UPPER\(sex\)",
    "SELECT COUNT(DISTINCT age) FROM people": "DISTINCT",
    "SELECT SUM(DISTINCT age) FROM people": "DISTINCT",
    "SELECT DISTINCT COUNT(*) FROM people": "SELECT DISTINCT",
    "SELECT COUNT(age, sex) FROM people": r"COUNT\(age, sex\)",
    "SELECT COUNT() FROM people": r"COUNT\(\)",
    "SELECT COUNT(NULL) FROM people": r"COUNT\(NULL\)",
    "SELECT COUNT(age < 5) FROM people": r"COUNT\(age < 5\).*FILTER",
    "SELECT COUNT(* EXCLUDE (age)) FROM people": "EXCLUDE",
    "SELECT COUNT(*) OVER () FROM people": "OVER",
    "SELECT SUM(age) IGNORE NULLS FROM people": "IGNORE NULLS",
    "SELECT SUM(age ORDER BY age) FROM people": "ORDER BY inside an aggregate",
    "SELECT SUM(sex) FROM people": "sex: SUM is for integers",
    "SELECT SUM(income) FROM people": "Income: SUM is for integers",
    "SELECT SUM(age * 2) FROM people": r"age \* 2",
    "SELECT SUM('a') FROM people": "whole numbers",
    "SELECT SUM(2.5) FROM people": "2.5.*whole numbers",
    "SELECT SUM(99999999999999) FROM people": "up to 1,099,511,627,776",
    "SELECT SUM(CASE age WHEN 1 THEN 1 END) FROM people": "CASE WHEN column = constant",
    "SELECT SUM(CASE WHEN flag THEN 'a' END) FROM people": "'a' is not supported.*whole numbers",
    "SELECT COUNT(CASE WHEN flag THEN age + 1 END) FROM people": r"age \+ 1",
    "SELECT (SELECT 1) FROM people": "subquery",
    "SELECT COUNT(*) AS 'x' FROM people": "text as alias",
    "SELECT sex, COUNT(*) AS sex FROM people GROUP BY sex": "called sex like a group column",
    "SELECT COUNT(*) FROM persons": "no table persons; the declared table is people",
    'SELECT COUNT(*) FROM "People"': "no table People",
    "SELECT COUNT(*) FROM main.people": "schema",
    "SELECT COUNT(*) FROM x.main.people": "schema|catalog",
    "SELECT COUNT(*) FROM people, people": "join",
    "SELECT COUNT(*) FROM people JOIN x ON TRUE": "join",
    "SELECT COUNT(*) FROM (SELECT * FROM people)": "subquery in FROM",
    "SELECT COUNT(*) FROM read_parquet('x')": r"table function READ_PARQUET\('x'\)",
    "SELECT COUNT(*) FROM 'people'": "file or a text after FROM",
    "SELECT COUNT(*) FROM people AS p (a, b)": "new names",
    "SELECT COUNT(*) FROM people TABLESAMPLE 10%": "TABLESAMPLE",
    "SELECT COUNT(*) FROM people USING SAMPLE 10": "SAMPLE",
    "SELECT COUNT(*) FROM people PIVOT (SUM(age) FOR sex IN ('a'))": "PIVOT",
    "SELECT COUNT(*) FROM people QUALIFY TRUE": "QUALIFY",
    "SELECT COUNT(*) FROM people WINDOW w AS ()": "WINDOW",
    "SELECT COUNT(*) FROM people HAVING COUNT(*) > 1": "HAVING",
    "SELECT COUNT(*) FROM people LIMIT 1": "LIMIT",
    "SELECT COUNT(*) FROM people OFFSET 1": "OFFSET",
    "SELECT COUNT(*) FROM people FETCH FIRST 1 ROWS ONLY": "LIMIT",
    "SELECT COUNT(*) FROM people FOR UPDATE": "FOR UPDATE",
    "SELECT COUNT(*) INTO x FROM people": "INTO",
    "SELECT COUNT(*) FROM people GROUP BY ALL": "GROUP BY ALL",
    "SELECT COUNT(*) FROM people GROUP BY ROLLUP (sex)": "ROLLUP",
    "SELECT COUNT(*) FROM people GROUP BY CUBE (sex)": "CUBE",
    "SELECT COUNT(*) FROM people GROUP BY GROUPING SETS ((sex))": "GROUPING SETS",
    "SELECT COUNT(*) FROM people GROUP BY sex, SEX": "sex is twice",
    "SELECT COUNT(*) FROM people GROUP BY 2": "GROUP BY 2: SELECT has 1 columns",
    "SELECT COUNT(*) FROM people GROUP BY 1": "GROUP BY the aggregate",
    "SELECT COUNT(*) FROM people GROUP BY age + 1": r"age \+ 1",
    "SELECT COUNT(*) FROM people GROUP BY 'sex'": "'sex'",
    "SELECT COUNT(*) FROM people GROUP BY big": "1,000,000 declared groups; the limit is 10,000.*big",
    "SELECT COUNT(*) FROM people GROUP BY born, date, age, hours, town": "declared groups; the limit",
    "SELECT sex, COUNT(*) n FROM people GROUP BY sex ORDER BY n": "ORDER BY takes the.* only: no attribute n",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 2": "ORDER BY 2",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY COUNT(*)": r"ORDER BY COUNT\(\*\)",
    "SELECT COUNT(*) FROM people ORDER BY age": "ORDER BY age",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY ALL": "ORDER BY",
    "SELECT COUNT(*) FROM people /* x ; SELECT 1 */": "comment",
    "SELECT COUNT(*) FROM people --+ hint": "hint",
    "SELECT /*+ FULL(people) */ COUNT(*) FROM people": "hint",
    "SELECT /*! x */ COUNT(*) FROM people": "hint",
}
REFUSED_CONDITIONS = {
    "salary = 3": "no attribute salary; declared: age, Income",
    "agge = 3": r"no attribute agge; did you mean age\?",
    '"AGE" = 3': '"AGE" is not declared.*"age"',
    '"Female" = sex': r"no attribute Female \(text takes single quotes\)",
    "other.age = 3": "other is not the table",
    "main.people.age = 3": "main.people.age",
    "age = 'x'": "^age: 'x' is not comparable with integers$",
    "age = TRUE": "age: TRUE is not comparable",
    "sex = 3": "sex: 3 is not comparable with categories",
    "flag = 1": "flag: 1 is not comparable",
    "born = 5": "born: 5 is not comparable",
    "born = '2024-1-5'": "born: '2024-1-5' is not a date",
    "born = '20240105'": "born: '20240105' is not a date",
    "born = DATE '2024-02-30'": "'2024-02-30' is not a date",
    "1 = 'x'": "1 is not comparable with 'x'",
    "sex = 'Femal'": r"sex: 'Femal' is not a declared value; did you mean 'Female'\?",
    "sex = 'a\nb'": "sex: 'a b' is not",
    "income < 5": "Income: < 5 cuts the bin.*nearest edges are 0 and 10",
    "town < 'x'": "town: < would cut",
    "town LIKE 'B%'": "town: LIKE would cut",
    "date = '2024-01-05'": "date: .* cuts the step",
    "age": "age: integers are no truth values",
    "age AND flag": "age: integers are no truth values",
    "5": "5 is no truth value",
    "'x'": "'x' is no truth value",
    "1 < age < 5": "1 < age < 5.*BETWEEN",
    "age = 3 = TRUE": "age = 3 = TRUE",
    "age = 5 IS NULL": "5 IS NULL",
    "age IN (1) IS NULL": "in parentheses",
    "age IS 5": "IS takes",
    "age IS TRUE": "age: integers are no truth values",
    "flag = (age < 5)": "age < 5 is not supported; a condition in the place of a value",
    "flag = NOT flag": "NOT flag",
    "age = hours": r"two columns \(age, hours\)",
    "age = age": "two columns",
    "age <> age IS NULL": "age IS NULL is not supported",
    "age::DATE = '2024-01-02'": r"CAST\(age AS DATE\)",
    "age IN (1, hours)": "two columns",
    "age + 1 = 3": r"age \+ 1",
    "-age = 3": "-age",
    "abs(age) = 3": r"ABS\(age\)",
    "age = 1 + 2": r"1 \+ 2",
    "nosuch(sex) = 'x'": "NOSUCH",
    "coalesce(age, 1) = 3": "COALESCE",
    "age::VARCHAR = '3'": r"CAST\(age AS",
    "CAST(age AS DATE) = '2024-01-01'": "CAST",
    "born = TIMESTAMPTZ '2024-01-01'": "TIMESTAMPTZ",
    "born = TRY_CAST('2024-01-01' AS DATE)": "TRY_CAST",
    "born > CURRENT_DATE": "CURRENT_DATE",
    "born > now()": r"CURRENT_TIMESTAMP|NOW",
    "born = INTERVAL 1 DAY": "INTERVAL",
    "CASE WHEN flag THEN TRUE END": "CASE inside WHERE",
    "age IN (SELECT 1)": "subquery",
    "age = (SELECT 1)": "subquery",
    "EXISTS (SELECT 1)": "EXISTS",
    "age = ANY (SELECT 1)": "ANY",
    "age <> ALL (SELECT 1)": "ALL",
    "age IN 5": "IN takes a list",
    "age IN ()": "IN takes a list",
    "age IN [1, NULL]": r"lists and structs \(\[\)",
    "age IN UNNEST([1])": r"lists and structs",
    "(age, sex) IN ((1, 'Male'))": "row of values",
    "age BETWEEN SYMMETRIC 5 AND 1": "BETWEEN SYMMETRIC",
    "sex ILIKE 'm%'": "ILIKE",
    "sex NOT ILIKE 'm%'": "ILIKE",
    "sex GLOB 'M*'": "GLOB",
    "sex SIMILAR TO 'M'": "SIMILAR TO",
    "regexp_matches(sex, 'M')": "regular expression|REGEXP",
    "sex ~ 'M'": "operator ~",
    "sex !~ 'M'": "operator !",
    "sex ^@ 'M'": r"operator \^",
    "sex || 'x' = 'Malex'": r"operator \|",
    "flag && flag": "operator &",
    "!flag": "operator !",
    "age <=> 5": "operator <=>",
    "@age = 5": "operator @",
    "sex LIKE ANY ('M%')": "ANY",
    "age LIKE '1%'": "age: LIKE is for categories, not for integers",
    "'Male' LIKE sex": "LIKE compares a column",
    "sex LIKE 5": "pattern of LIKE",
    "sex LIKE 'M%' ESCAPE 'ab'": "ESCAPE takes one character",
    "sex LIKE 'M!' ESCAPE '!'": "ends in its escape",
    "sex COLLATE NOCASE = 'male'": "COLLATE",
    "age = ?": r"parameters and positions \(\?\)",
    "age = $1": r"\(\$\)",
    "age = :x": r"\(:\)",
    "#1 = 5": r"\(#\)",
    "sex = E'M\\n'": "E'M",
    "sex = X'00'": "X'00'",
    "sex = 'Ma' 'le'": "CONCAT",
    "sex = $$Male$$": r"\(\$\)",
    "age = 1e999": "1e999 is out of range",
    "age = 1.2.3": "1.2.3",
    "COLUMNS(*) = 5": "COLUMNS",
    "people.* = 5": r"people.\*",
    "flag XOR flag": "XOR",
    "big IN (1) OR " + " OR ".join(f"(big = {n} AND flag)" for n in range(400)): "too many|too deep",
}


def one_line(error: LaprasError) -> str:
    message = str(error)
    assert message.isprintable(), repr(message)
    assert len(message) < 400
    assert not re.search(
        r"\b[a-z]+[A-Z]\w*|\bsqlglot|<class|Error\b|\bexp\.|\bNode\b|None|object at", message
    ), message
    return message


@pytest.mark.parametrize(("text", "named"), REFUSED.items())
def test_refused_statements(text, named, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(UnsupportedQuery) as refusal:
        ask(text)
    assert re.search(named, one_line(refusal.value)), str(refusal.value)
    assert not caplog.records


@pytest.mark.parametrize(("condition", "named"), REFUSED_CONDITIONS.items())
def test_refused_conditions(condition, named, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(UnsupportedQuery) as refusal:
        where(condition)
    assert re.search(named, one_line(refusal.value)), str(refusal.value)
    assert not caplog.records


@pytest.mark.parametrize("word", ["JOIN", "left join", "STRAIGHT_JOIN", "ARRAY JOIN"])
def test_many_joins_are_refused_before_a_parser_spends_its_time_on_them(word, monkeypatch):
    monkeypatch.setattr("laprasdp.sql.syntax.parse", None)  # 20 of them take sqlglot a quarter of a minute
    with pytest.raises(UnsupportedQuery, match=r"a join .* is not supported"):
        ask("SELECT COUNT(*) FROM people" + f" {word} people" * 20)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT COUNT(*) FROM people WHERE age = 3 AND", "line 1, column 43: something is missing"),
        ("SELECT COUNT(*)\nFROM people\nWHERE age = = 3", "line 3, column 13"),
        ("SELECT COUNT(*)\nFROM people WHERE (age = 3", "line 2, column 19: a parenthesis is not closed"),
        ("SELECT COUNT(*) FROM people WHERE age = 3)", r"line 1, column 42: \) without \("),
        ("SELECT COUNT(*) FROM people WHERE age BETWEEN 3 5", "BETWEEN takes two constants with AND"),
        ("SELECT COUNT(*) FROM people WHERE born = CAST('2024-01-02' AS DATE", "column 46: a parenthesis"),
        ("SELECT COUNT(*) FROM people WHERE sex = 'Male", "line 1, column 41: a quote is not closed"),
        ("SELECT COUNT(*) FROM people WHERE sex = \n'Male''", "line 2, column 1: a quote is not closed"),
        ("SELECT COUNT(*) FROM people /* WHERE age = 3", "line 1, column 29: a comment is not closed"),
        ("SELECT COUNT(*) FROM people /* /* */ WHERE age = 3", "line 1, column 29: a comment is not closed"),
        ("SELECT COUNT(*) FROM people WHERE age = 3 WHERE flag", "line 1, column 43: WHERE is given twice"),
        ("SELECT COUNT(*) FROM people WHERE age = 5abc", "line 1, column 42: .* at abc"),
        ("SELECT COUNT(*) FROM people WHERE age \0= 5", "line 1, column 39: a control character"),
        ('SELECT COUNT(*) FROM people WHERE "" = 5', "line 1, column 35: an empty quoted name"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text, place):
    with pytest.raises(QuerySyntaxError) as refusal:
        ask(text)
    assert re.search(place, one_line(refusal.value)), str(refusal.value)


# ---- any text ---------------------------------------------------------------------------------------------

SCRAPS = """
SELECT COUNT ( * ) FROM people WHERE age = 3 AND OR NOT ( ) IN BETWEEN LIKE 'Male' sex flag NULL IS TRUE
, ; . GROUP BY ORDER CASE WHEN THEN END SUM FILTER DATE '2024-01-01' 1e5 -- /* */ ESCAPE DISTINCT < > :: - +
0 OVER JOIN ON UNION WITH AS LIMIT VALUES CAST INTERVAL EXISTS ALL ANY [ ] { } $ @ # % é " '
"""
WORDS = st.sampled_from([*SCRAPS.split(), "\\", "\n", "\x00"])


def refused_or_parsed(text: str) -> None:
    try:
        ask(text)
    except UnsupportedQuery as error:
        one_line_of_any_text = str(error)
        assert "\n" not in one_line_of_any_text
        assert "<class" not in one_line_of_any_text
        assert "\x1b" not in one_line_of_any_text
        assert len(one_line_of_any_text) < 1100


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_is_parsed_or_refused(text):
    refused_or_parsed(text)
    refused_or_parsed("SELECT " + text)
    refused_or_parsed("SELECT COUNT(*) FROM people WHERE " + text)


@settings(max_examples=500, deadline=None)
@given(st.lists(WORDS, max_size=25))
def test_any_words_are_parsed_or_refused(words):
    refused_or_parsed("SELECT COUNT(*) FROM people " + " ".join(words))
    refused_or_parsed("SELECT " + " ".join(words) + " FROM people")


@settings(max_examples=500, deadline=None)
@given(st.sampled_from([*REFUSED, *(f"SELECT COUNT(*) FROM people WHERE {c}" for c in MEANT)]), st.data())
def test_any_mutation_is_parsed_or_refused(text, data):
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 3))
        text = text[:place] + data.draw(WORDS) + text[place + gone :]
    refused_or_parsed(text)
